"""Names that the numeric core and the command line share: a module that costs nothing to import."""

from __future__ import annotations

__all__ = ["DISTS", "METHODS"]

#: Laws of K, as ``--dist`` names them.
DISTS = ("poisson", "tnb", "geometric", "logarithmic", "binomial", "fixed", "pmf", "threshold")

#: Every bound ``--method`` can name, beside the groups ``paper``, ``refined`` and ``best``.
METHODS = (
    "theorem-2",
    "theorem-2-sharper",
    "theorem-6",
    "corollary-3",
    "corollary-4",
    "lemma-7",
    "lemma-20",
    "lemma-22",
    "proposition-15",
    "composition",
    "refined-rdp",
    "refined-profile",
    "refined-pure",
    "refined-conditional",
)
