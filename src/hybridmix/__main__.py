"""``python -m hybridmix`` is the command line."""

import sys

from hybridmix.cli import main

if __name__ == "__main__":
    sys.exit(main())
