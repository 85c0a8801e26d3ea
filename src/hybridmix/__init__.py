"""hybridmix: generative models trained to discriminate."""
