"""``python -m hpcalc``."""

import sys

from hpcalc.cli import main

if __name__ == "__main__":
    sys.exit(main())
