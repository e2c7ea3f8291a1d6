"""Same input, same bytes: whatever the number of threads, the hash seed, and what was asked before."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from hpcalc import ZCDP, Laplace, PureDP, RDPCurve
from hpcalc.guarantees import compose
from hpcalc.logspace import Prob

SCRIPT = """
import json
from hpcalc import ZCDP, ApproxDP, Gaussian, Laplace, PureDP, RDPCurve, Poisson, TruncatedNegativeBinomial, bound
from hpcalc.laws import AtMost, Binomial
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


@pytest.mark.slow
def test_threads_and_hash_seed_change_nothing():
    first = answers(1, 0)
    assert len(json.loads(first)) == 6
    assert answers(2, 12345) == first


@pytest.mark.slow
def test_what_was_asked_before_changes_nothing():
    head = SCRIPT.partition("asked =")[0]
    pairs = (
        "[(ZCDP(0.1), Poisson(10.0)), (RDPCurve({1.5: 0.1, 2.0: 0.2, 8.0: 1.0}), Poisson(2.0)), (Gaussian(2.0), tnb)]"
    )
    ask = f"print(json.dumps([bound(base, law).document() for base, law in {pairs}]))\n"
    # other laws on the same guarantees, and another guarantee with the same laws
    before = f"for base, law in {pairs}: [bound(base, other, delta=1e-9) for other in (Poisson(77.0), tnb)]\n"
    before += "for law in (Poisson(10.0), Poisson(2.0)): bound(ZCDP(0.37), law)\n"
    fresh, later = (
        subprocess.run([sys.executable, "-c", head + text], capture_output=True, check=True).stdout
        for text in (ask, before + ask)
    )
    assert fresh == later


@pytest.mark.parametrize(
    "base",
    [
        ZCDP(1e-10),
        ZCDP(0.1),
        ZCDP(100.0),
        compose(ZCDP(0.1), Laplace(0.1)),  # the best order falls to 1 between two ranks here
        compose(ZCDP(1.0), PureDP(8.0)),
        RDPCurve({1.5: 0.1, 2.0: 0.2, 8.0: 1.0}),
    ],
)
def test_a_region_does_not_depend_on_the_ranks_asked_for_beside_it(base):
    x = np.concatenate([np.linspace(-41.0, 38.0, 60), np.linspace(-6.0, 3.0, 61)])
    whole = base.region(Prob.from_normal(x))
    for size in (1, 7):
        parts = [base.region(Prob.from_normal(x[i : i + size])) for i in range(0, x.size, size)]
        for name in ("log_u", "log_q"):
            together = np.concatenate([getattr(part, name) for part in parts])
            np.testing.assert_array_equal(together, getattr(whole, name))


@pytest.mark.parametrize("base", [ZCDP(100.0), compose(ZCDP(0.1), Laplace(0.1)), compose(ZCDP(1.0), PureDP(8.0))])
def test_the_region_has_no_spike_where_the_best_order_falls_to_one(base):
    # v is concave in u, so between neighbouring ranks it is at least the chord and at most the outer chords prolonged
    x = np.linspace(-16.0, 0.0, 3001)
    rank = Prob.from_normal(x)
    v = np.exp(base.core.region(rank).log_q)  # 1 - v is convex in u
    u = np.exp(rank.log_u)
    chord = v[:-2] + (v[2:] - v[:-2]) * (u[1:-1] - u[:-2]) / (u[2:] - u[:-2])
    assert np.all(v[1:-1] <= chord * 1.01)
