"""``python -m hybridmix`` is the command line."""

from hybridmix.cli import run_and_exit

if __name__ == "__main__":
    run_and_exit()
