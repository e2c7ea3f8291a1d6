"""The differential-privacy cost of best-of-K searches."""

__version__ = "0.1.0"
__date__ = "2026-11-28"  # of the release; printed in the man pages, which must not change from build to build
