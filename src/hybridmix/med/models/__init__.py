"""Log-partitions of models: linear, kernels, switches, families, trees."""
