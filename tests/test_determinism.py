"""Same input, same bytes: whatever the number of threads, the hash seed, and what was asked before."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from hpcalc import ZCDP, ApproxDP, Gaussian, Laplace, Poisson, RDPCurve, TruncatedNegativeBinomial, bound
from hpcalc.runs import AtMost, Binomial, Fixed

SCRIPT = """
import json
from hpcalc import ZCDP, ApproxDP, Gaussian, Laplace, PureDP, RDPCurve, Poisson, TruncatedNegativeBinomial, bound
from hpcalc.runs import AtMost, Binomial
tnb = TruncatedNegativeBinomial.with_mean(10.0, eta=0.5)
asked = [
    (ZCDP(0.1), Poisson(10.0)),
    (Gaussian(2.0), tnb),
    (PureDP(1.0), AtMost(tnb, 200)),
    (ApproxDP(0.5, 1e-8), Binomial(50, 0.1)),
    (RDPCurve({1.5: 0.1, 2.0: 0.2, 8.0: 1.0, 32.0: 4.5}), tnb),
    (Laplace(2.0), Poisson(3.0)),
]
print(json.dumps([bound(base, law, explain=True).document() for base, law in asked], indent=1))
"""

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


def answers(threads: int, seed: int) -> bytes:
    environment = {**os.environ, **dict.fromkeys(THREADS, str(threads)), "PYTHONHASHSEED": str(seed)}
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, check=True, env=environment)
    return done.stdout


def test_threads_and_hash_seed_change_nothing():
    first = answers(1, 0)
    assert len(json.loads(first)) == 6
    assert answers(2, 0) == first
    assert answers(2, 12345) == first


@pytest.mark.parametrize(
    ("base", "law"),
    [
        (ZCDP(0.1), Poisson(10.0)),
        (ZCDP(0.1), TruncatedNegativeBinomial.with_mean(10.0, eta=0.0)),
        (RDPCurve({1.5: 0.1, 2.0: 0.2, 8.0: 1.0}), Poisson(2.0)),
        (Gaussian(2.0), Fixed(4)),
        (Laplace(1.0), AtMost(Poisson(5.0), 9)),
        (ApproxDP(0.5, 1e-8), Binomial(50, 0.1)),
    ],
)
def test_what_was_asked_before_changes_nothing(base, law):
    fresh = bound(base, law).document()
    for other in (Poisson(77.0), TruncatedNegativeBinomial.with_mean(3.0, eta=-0.5), Fixed(9)):
        bound(base, other, delta=1e-9)  # regions are remembered between questions on one base
    bound(ZCDP(0.37), law)
    assert bound(base, law).document() == fresh
