"""``python -m hpcalc``."""

from __future__ import annotations

import sys

from hpcalc.cli import main

if __name__ == "__main__":
    sys.exit(main())
