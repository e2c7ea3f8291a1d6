"""What there is: the laws of K, the guarantees one run can have, and the bounds on a whole search.

Tables of plain strings, free to import. The parser and its help, completions, man pages, schema, ``make_law``,
``--law``, ``--solve-for`` and all labels read them. A law, a guarantee or a bound is one class and one row here.
"""

from __future__ import annotations

from typing import NamedTuple


class Parameter(NamedTuple):
    """A parameter of a law: an option of the command line, and a keyword of ``make_law``."""

    domain: str  # positive, probability (in (0, 1]), whole (>= 1), shape (> -1) or file
    metavar: str
    help: str


PARAMETERS: dict[str, Parameter] = {
    "mu": Parameter("positive", "M", "poisson: the mean."),
    "eta": Parameter("shape", "H", "tnb: the shape, above -1 (0 is logarithmic, 1 is geometric)."),
    "gamma": Parameter("probability", "G", "tnb, geometric, logarithmic: the scale, in (0, 1)."),
    "n": Parameter("whole", "N", "binomial: the number of coins."),
    "p": Parameter("probability", "P", "binomial: the probability of each coin."),
    "k": Parameter("whole", "K", "fixed, composition: the number of runs."),
    "pmf": Parameter("file", "FILE", "pmf: probabilities of K from a YAML, JSON or CSV file."),
    "accept": Parameter("probability", "P", "threshold: runs repeat until one is accepted; P is a lower bound on its "
                        "acceptance, or the stop coin."),
}  # fmt: skip


class Law(NamedTuple):
    """A law of K, by the name it has as ``--dist``; its class takes ``parameters`` in their order."""

    target: str  # its class, as pkgutil.resolve_name finds it
    parameters: tuple[str, ...]  # keys of PARAMETERS, in the order of the command line
    title: str  # its name for people
    scales: tuple[str, ...] = ()  # what sets how often a search runs, and may be left open; --mean replaces the first
    safe: str = "down"  # direction in which the scales mean fewer runs: a solved value is rounded so
    defaults: tuple[str, ...] = ()  # as --law, what a comparison and a plan consider unless others are named
    cuttable: bool = True  # whether --max-runs, --clamp-runs and --at-least-one mean something


LAWS: dict[str, Law] = {
    "poisson": Law("hpcalc.laws:Poisson", ("mu",), "Poisson", ("mu",), defaults=("poisson",)),
    "tnb": Law("hpcalc.laws:TruncatedNegativeBinomial", ("eta", "gamma"), "truncated negative binomial", ("gamma",),
               "up", ("tnb:eta=-0.5", "tnb:eta=0", "tnb:eta=0.5", "tnb:eta=1")),
    "geometric": Law("hpcalc.laws:Geometric", ("gamma",), "geometric", ("gamma",), "up"),
    "logarithmic": Law("hpcalc.laws:Logarithmic", ("gamma",), "logarithmic", ("gamma",), "up"),
    "binomial": Law("hpcalc.laws:Binomial", ("n", "p"), "binomial", ("p", "n")),
    "fixed": Law("hpcalc.laws:Fixed", ("k",), "fixed number of fresh draws", ("k",)),
    "composition": Law("hpcalc.laws:AnyRuns", ("k",), "runs chosen in any way, all paid for", ("k",), cuttable=False),
    "pmf": Law("hpcalc.laws:FinitePmf", ("pmf",), "given probabilities of K"),
    "threshold": Law("hpcalc.laws:Threshold", ("accept",), "runs until one is accepted", ("accept",), "up",
                     cuttable=False),
}  # fmt: skip

#: Laws whose K is not drawn beforehand, and why.
NOT_DRAWN = {
    "threshold": "there is no K to draw: the search runs until a run is accepted, and stops there; the best of a drawn "
    "K is another, dearer mechanism",
    "composition": "there is no K to draw: its runs are chosen in any way, and every one is paid for",
}


class Guarantee(NamedTuple):
    """A guarantee of one run, by the name of its option."""

    target: str  # its class, as pkgutil.resolve_name finds it
    arity: int  # numbers the option takes; 0: one text (points of a curve) or, where metavar is FILE, a file
    metavar: str
    help: str
    infinite: bool = False  # whether an infinite loss is legal input: no guarantee, and the answer says so
    solve_for: str | None = None  # what plan --solve-for calls it, if it can be solved for
    safe: str = "down"  # direction in which the solved number means less loss, and is rounded


_G = "hpcalc.guarantees"

GUARANTEES: dict[str, Guarantee] = {
    "pure": Guarantee(f"{_G}.mechanisms:PureDP", 1, "EPS", "EPS-differential privacy.", True, "pure"),
    "zcdp": Guarantee(f"{_G}.curves:ZCDP", 1, "RHO", "RHO-zero-concentrated differential privacy.", True, "zcdp"),
    "approx-dp": Guarantee(f"{_G}.composition:ApproxDP", 2, "EPS DELTA", "(EPS, DELTA)-differential privacy.", True),
    "gaussian": Guarantee(f"{_G}.mechanisms:Gaussian", 1, "SIGMA", "Gaussian mechanism; SIGMA is the noise multiplier, "
                          "noise standard deviation / L2 sensitivity.", solve_for="gaussian", safe="up"),
    "laplace": Guarantee(f"{_G}.mechanisms:Laplace", 1, "SCALE", "Laplace mechanism; SCALE is noise scale / L1 "
                         "sensitivity.", solve_for="laplace", safe="up"),
    "rdp": Guarantee(f"{_G}.curves:RDPCurve", 0, "ORDER:EPS,...", "Points of a Renyi curve, e.g. 2:0.5,8:1.9,inf:4."),
    "rdp-file": Guarantee(f"{_G}.curves:RDPCurve", 0, "FILE", "Points of a Renyi curve from a YAML, JSON or CSV file, "
                          "as other accountants export them."),
    "profile-file": Guarantee(f"{_G}.curves:ProfileCurve", 0, "FILE", "Points (epsilon, delta) of a privacy profile "
                              "from a YAML, JSON or CSV file."),
    "dpsgd": Guarantee(f"{_G}.dpsgd:DPSGD", 3, "RATE SIGMA STEPS", "Poisson-sampled DP-SGD: sampling rate, noise "
                       "multiplier, number of steps.", solve_for="dpsgd-noise", safe="up"),
}  # fmt: skip


#: Bounds on a whole search, by the names they have as ``--method`` and in answers, and their group: "paper" (as
#: published), "refined" or "" (of no group, under "best" and by its name alone).
METHODS: dict[str, str] = {
    "theorem-2": "paper", "theorem-2-sharper": "", "theorem-6": "paper", "corollary-3": "paper",
    "corollary-4": "paper", "lemma-7": "paper", "lemma-20": "paper", "lemma-22": "paper", "proposition-15": "paper",
    "composition": "paper", "refined-rdp": "refined", "refined-region": "refined", "refined-pure": "refined",
    "refined-conditional": "refined",
}  # fmt: skip

#: What a name of former versions, or of other tools, is called here: offered where it is typed.
HINTS: dict[str, str] = {
    "refined-profile": "refined-region", "negative-binomial": "tnb", "truncated-negative-binomial": "tnb",
    "nbinom": "tnb", "geom": "geometric", "logarithm": "logarithmic", "logser": "logarithmic", "binom": "binomial",
    "constant": "fixed", "grid": "composition", "list": "composition", "bayesian": "composition",
    "adaptive": "composition", "conditional": "threshold",
}  # fmt: skip
