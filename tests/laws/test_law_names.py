"""Laws of K by name: the table of laws, options, one line of text, families with an open scale."""

import copy
import math
import pickle
from pkgutil import resolve_name

import numpy as np
import pytest
from law_oracle import LAWS, TNB

from hpcalc import AnyRuns, AtLeastOne, AtMost, Binomial, Clamped, FinitePmf, Fixed, Geometric, Poisson, catalog
from hpcalc.errors import InvalidInput
from hpcalc.laws import Logarithmic, RunCount, Threshold, make_law, parse_law
from hpcalc.laws.family import DEFAULT_FAMILIES, families_of, family_of

ONE = {"poisson": "mu=3", "tnb": "eta=0.5,gamma=0.1", "geometric": "gamma=0.1", "logarithmic": "gamma=0.1",
       "binomial": "n=9,p=0.5", "fixed": "k=4", "composition": "k=4", "pmf": "1=0.5,7=0.5",
       "threshold": "accept=0.2"}  # fmt: skip


class Doubled(Poisson):
    """A law of one's own: one class, and one row in the table."""

    name = "doubled"

    def parameters(self):
        return {"half": self.mu / 2.0}

    def __init__(self, half):
        super().__init__(2.0 * half)

    @classmethod
    def with_mean(cls, mean):
        return cls(mean / 2.0)


def test_a_law_is_one_class_and_one_row(monkeypatch):
    row = catalog.Law(f"{__name__}:Doubled", ("half",), "doubled Poisson", ("half",))
    monkeypatch.setitem(catalog.LAWS, "doubled", row)
    assert make_law(**parse_law("doubled:half=2.5,max-runs=9")) == AtMost(Doubled(2.5), 9)
    assert make_law("doubled", mean=10).parameters() == {"half": 5.0}
    family = family_of("doubled")
    assert (family.scale, family.at(3.0).mean, family.scale_at(8.0)) == ("half", 6, 4)
    with pytest.raises(InvalidInput, match="needs half or mean"):
        make_law("doubled")


def test_every_row_is_a_law_that_can_be_written():
    assert tuple(ONE) == tuple(catalog.LAWS)
    for dist, text in ONE.items():
        row, law = catalog.LAWS[dist], make_law(**parse_law(f"{dist}:{text}"))
        assert type(law) is resolve_name(row.target)
        assert law.name == dist
        assert isinstance(law, RunCount)
        assert tuple(law.parameters()) == row.parameters
        assert set(row.parameters) <= set(catalog.PARAMETERS)
        assert pickle.loads(pickle.dumps(law)) == copy.copy(law) == law
        assert hash(law) == hash(law)
        family = family_of(law)
        assert family.given == law
        assert family.scale == (row.scales[0] if row.scales else None)
        if row.scales:
            safe, bold = family.grid.safest, family.grid.boldest
            assert (safe > bold) == (row.safe == "up")
            assert family.at(safe).log_mean <= law.log_mean
            assert family.at(law.parameters()[family.scale]).parameters() == law.parameters()
    assert {guarantee.safe for guarantee in catalog.GUARANTEES.values()} == {"up", "down"}
    assert all(resolve_name(guarantee.target) for guarantee in catalog.GUARANTEES.values())
    assert all(name not in catalog.HINTS for name in (*catalog.LAWS, *catalog.METHODS))
    assert all(known in (*catalog.LAWS, *catalog.METHODS) for known in catalog.HINTS.values())


def test_families():
    assert [f.label for f in DEFAULT_FAMILIES] == ["poisson", "tnb:eta=-0.5", "tnb:eta=0", "tnb:eta=0.5", "tnb:eta=1"]
    assert family_of("poisson") in DEFAULT_FAMILIES
    family = family_of({"dist": "binomial", "p": 0.5, "max_runs": 30, "at_least_one": True})
    assert (family.scale, family.grid.digits, family.label) == ("n", 0, "binomial:p=0.5,max-runs=30,at-least-one")
    assert family.with_mean(4.9) == AtLeastOne(Binomial(10, 0.5))
    assert family_of("fixed").with_mean(4.6) == Fixed(5)
    assert family_of("composition").with_mean(4.6) == AnyRuns(5)
    assert family_of("binomial:n=5").scale_at(6.0) == 1.0
    assert family_of("poisson:mean=3").given == Poisson(3.0)
    assert families_of(None, DEFAULT_FAMILIES) is DEFAULT_FAMILIES
    assert [f.dist for f in families_of(["poisson", Geometric(0.5)], ())] == ["poisson", "geometric"]
    assert families_of(family, ()) == (family,)
    for wrong in ("tnb:eta=-2", "poison", "tnb"):
        with pytest.raises(InvalidInput):
            family_of(wrong)
    with pytest.raises(InvalidInput, match="mean of its own"):
        family_of("pmf:1=1").with_mean(3.0)
    for wrong in (10, None, 0.5):
        with pytest.raises(TypeError, match="give a law of K"):
            families_of(wrong if wrong is not None else [None], ())


WRONG = [
    ("poisson", {"mu": bad}, "mu") for bad in (math.inf, math.nan, True, 0.0, "3", None, -1.0, 10**400)
] + [
    ("poisson", {"mu": 1.0, **more}, name) for name, more in (
        ("mean", {"mean": 1.0}), ("eta", {"eta": 0.0}), ("max_runs", {"max_runs": 0}), ("max_runs", {"max_runs": 2.5}),
        ("max_runs", {"max_runs": True}), ("max_runs", {"max_runs": 100_001}), ("clamp_runs", {"clamp_runs": 0}),
        ("clamp_runs", {"clamp_runs": 3, "max_runs": 3}), ("at_least_one", {"at_least_one": 2}))
] + [
    ("poisson", {"mean": 0.0}, "mean"),
    *(("tnb", {"eta": eta, "gamma": 0.5}, "eta") for eta in (-1.0, -1.5, math.nan, None)),
    *(("tnb", {"eta": 0.0, "gamma": gamma}, "gamma") for gamma in (0.0, 1.5, math.nan, -0.1, None)),
    *(("tnb", {"eta": 0.0, "mean": mean}, "mean") for mean in (0.5, 1.0 - 1e-12, math.inf)),
    ("tnb", {"eta": math.inf, "mean": 5.0}, "eta"),
    ("geometric", {"eta": 1.0, "gamma": 0.5}, "eta"),
    ("binomial", {"n": 2.5, "p": 0.5}, "n"),
    ("binomial", {"n": 0, "p": 0.5}, "n"),
    ("binomial", {"n": 5, "p": 0.0}, "p"),
    ("binomial", {"n": 5, "p": 1.01}, "p"),
    ("binomial", {"n": 5, "mean": 6}, "mean"),
    ("binomial", {"mean": 6}, "n"),
    *(("fixed", {"k": k}, "k") for k in (2.5, 0, -1, math.inf, 1e300, 2**53 + 2, "7", np.True_, [3], None)),
    ("fixed", {"mean": 3}, "mean"),
    ("fixed", {"k": 5, "max_runs": 4}, "max_runs"),
    ("pmf", {"pmf": {0: 0.5, 9: 0.5}, "max_runs": 4}, "max_runs"),
    ("composition", {"k": 3, "max_runs": 2}, "max_runs"),
    ("composition", {"k": 3, "clamp_runs": 2}, "clamp_runs"),
    *(("pmf", {"pmf": pmf}, "pmf") for pmf in (
        [0.5, 0.6], [1.5, -0.5], [math.nan, 1.0], [[1, 0.5], [1, 0.5]], {1.5: 1.0}, {-1: 1.0}, {"1": 0.5, "one": 0.5},
        [1.0], [], 0.5, "file", [[1, 0.5], 0.5], [[1, 0.5, 0.0], [2, 0.5]], {1: 1 + 5e-9, 2: 0.0},
        {1: 0.5, 2: 0.5 - 3e-9})),
    ("threshold", {"accept": 0.0}, "accept"),
    ("threshold", {"accept": 2.0}, "accept"),
    ("threshold", {"accept": 0.5, "max_runs": 3}, "max_runs"),
    ("threshold", {"accept": 0.5, "at_least_one": True}, "at_least_one"),
    ("threshold", {"mean": 0.5}, "mean"),
    ("poison", {"mu": 1.0}, "dist"),
    (["poisson"], {}, "dist"),
]  # fmt: skip


@pytest.mark.parametrize(("dist", "params", "name"), WRONG, ids=str)
def test_wrong_input_names_its_option(dist, params, name):
    with pytest.raises(InvalidInput) as caught:
        make_law(dist, **params)
    assert caught.value.parameter == name
    assert len(str(caught.value).splitlines()) == 1


def test_laws_by_their_options():
    for dist, params, law in (
        ("fixed", {"k": 1e3}, Fixed(1000)),
        ("fixed", {"k": 3, "max_runs": 3}, Fixed(3)),
        ("binomial", {"n": 1e2, "p": 1}, Binomial(100, 1.0)),
        ("binomial", {"n": 20, "mean": 10}, Binomial(20, 0.5)),
        ("logarithmic", {"mean": 5}, Logarithmic.with_mean(5.0)),
        ("geometric", {"gamma": 0.5}, Geometric(0.5)),
        ("geometric", {"gamma": 0.5, "clamp_runs": 3}, Clamped(Geometric(0.5), 3)),
        ("tnb", {"eta": 0, "mean": 10}, TNB.with_mean(10.0, eta=0.0)),
        ("threshold", {"mean": 10, "at_least_one": False}, Threshold(0.1)),
        ("poisson", {"mu": 2, "at_least_one": np.True_}, AtLeastOne(Poisson(2.0))),
        ("poisson", {"mean": 0.5, "max_runs": 3, "at_least_one": True}, AtLeastOne(AtMost(Poisson(0.5), 3))),
        ("poisson", {"mu": 1, "at_least_one": False, "max_runs": None}, Poisson(1.0)),
        ("pmf", {"pmf": {"1": 0.5, "1000": 0.5}}, FinitePmf(((1, 0.5), (1000, 0.5)))),
        ("pmf", {"pmf": [0, 0.5, 0.5]}, FinitePmf(((1, 0.5), (2, 0.5)))),
    ):
        assert make_law(dist, **params) == law
    assert type(Fixed(1e3).k) is int
    assert Fixed(2**53).k == 2**53
    for gamma in (0.0269, 1e-300, 0.1, 0.5, 0.02):
        assert make_law("tnb", eta=0, gamma=gamma).parameters()["gamma"] == gamma
    flat = FinitePmf(dict.fromkeys(range(1, 34), 1 / 33))
    assert flat.parameters() == {"pmf": "33 values from 1 to 33"}


def test_the_negative_binomial_by_its_parameters():
    assert repr(TNB(-0.0, 1.0).parameters()) == "{'eta': 0.0, 'gamma': 1.0}"
    assert TNB(0.5, 0.02) == TNB.from_log_gamma(0.5, math.log(0.02))
    assert (TNB(0.5, 1.0).max_runs, TNB.from_log_gamma(0.5, -1e-9).max_runs) == (1, None)
    assert list(TNB.from_log_gamma(0.5, -707.9).parameters()) == ["eta", "gamma"]
    assert TNB.from_log_gamma(-0.99, -922.0).parameters() == {"eta": -0.99, "log_gamma": -922.0}
    assert (Geometric(0.02).eta, Logarithmic(0.02).eta) == (1.0, 0.0)
    assert Geometric(0.5) != TNB(1.0, 0.5)
    for law in (Geometric(0.02), TNB(0.5, 0.1), TNB.from_log_gamma(0.5, -900.0), Geometric.from_log_gamma(1.0, -900.0)):
        assert eval(repr(law), {"Geometric": Geometric, "TruncatedNegativeBinomial": TNB}) == law
    for bad in (0.5, 1e-300, math.nan, -math.inf):
        with pytest.raises(InvalidInput, match="^gamma: "):
            TNB.from_log_gamma(0.0, bad)
    with pytest.raises(InvalidInput, match="^eta: .*geometric"):
        Geometric.from_log_gamma(0.5, -1.0)
    with pytest.raises(InvalidInput, match="^eta: "):
        TNB.with_mean(3.0)


def test_parse_law():
    for text, want in (
        ("tnb:eta=0,mean=10", {"dist": "tnb", "eta": 0.0, "mean": 10.0}),
        (" poisson : mu = 1e1, max-runs=30, at-least-one",
         {"dist": "poisson", "mu": 10.0, "max_runs": 30.0, "at_least_one": True}),
        ("poisson:at_least_one=FALSE,clamp-runs=3", {"dist": "poisson", "at_least_one": False, "clamp_runs": 3.0}),
        ("tnb", {"dist": "tnb"}),
        ("pmf:1=0.5,1000=0.5", {"dist": "pmf", "pmf": {"1": 0.5, "1000": 0.5}}),
        ("pmf:pmf=k.yaml,max-runs=3", {"dist": "pmf", "pmf": "k.yaml", "max_runs": 3.0}),
    ):  # fmt: skip
        assert parse_law(text) == want
    for law in LAWS:
        words = [v if k == "pmf" else k if v is True else f"{k}={v}" for k, v in law.parameters().items()]
        if law.name not in ("tnb", "pmf") and not isinstance(getattr(law, "law", None), AtLeastOne):
            assert make_law(**parse_law(f"{law.name}:{','.join(words)}")) == law


@pytest.mark.parametrize(("text", "message"), [
    ("", "the laws are"), ("poison:mu=1", "did you mean poisson"), ("negative-binomial:mean=3", "did you mean tnb"),
    ("tnb:etta=1", "did you mean eta"), ("tnb:eta", "write NAME"), ("tnb:eta=", "write NAME"),
    ("tnb:eta=x", "not 'x'"), ("tnb:eta=0,eta=1", "eta once"), ("poisson:mu=1,,", "write NAME"), ("tnb:3=1", "not 3"),
    ("poisson:eta=1", "not eta"), ("pmf:1=0.5,1=0.5", "1 once"), ("pmf:1=0.5,pmf=f", "not both"), ("pmf:0.5=1", "0.5"),
    ("poisson:mu=1,at-least-one=maybe", "true or false"), (None, "write NAME")])  # fmt: skip
def test_parse_law_refuses(text, message):
    with pytest.raises(InvalidInput, match=message) as caught:
        parse_law(text)
    assert caught.value.parameter == "law"
