"""The command line. This module stays tiny: ``main`` must be able to catch Ctrl-C while the rest still loads."""

from __future__ import annotations

import gc
import os
import sys
import warnings
from collections.abc import Sequence

# One thread answers every question here, and starting a BLAS thread pool costs more than most answers.
_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code, 70 for a bug in hpcalc itself; nothing escapes as a traceback."""
    try:
        for name in _THREADS:
            os.environ.setdefault(name, "1")
        if argv is None:
            gc.disable()  # answers leave no cycles behind, and looking for them takes a tenth of a short one
            if not sys.warnoptions:
                # stderr says what concerns the user; Python's own warnings concern developers, who ask with -W
                warnings.simplefilter("ignore")
        from hpcalc.cli.app import run

        code = run(sys.argv[1:] if argv is None else argv)
        if argv is None:
            gc.freeze()  # nor are they looked for at the end
        return code
    except KeyboardInterrupt:
        return 130
