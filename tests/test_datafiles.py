"""Files of points, laws and scores: every shape other tools write, and files that must be refused."""

from __future__ import annotations

import json
import math
import random
import tracemalloc

import pytest
import yaml

from hpcalc import bound
from hpcalc.cli import main
from hpcalc.conversion import epsilon_at
from hpcalc.datafiles import parse_rdp_text, read_history, read_pmf, read_profile, read_rdp, read_scores
from hpcalc.errors import DataFileError, HpcalcError, InvalidInput
from hpcalc.files import Source, points_text, read_tree, yaml_text
from hpcalc.guarantees import ApproxDP, Gaussian, ProfileCurve, PureDP, RDPCurve, compose
from hpcalc.guarantees.dpsgd import DPSGD
from hpcalc.laws import FinitePmf, Poisson, TruncatedNegativeBinomial

CURVE = {1.5: 0.31, 2.0: 0.42, 64.0: 2.9, math.inf: 3.1}


@pytest.fixture
def write(tmp_path):
    def write(content, name="file.yaml"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
        return str(path)

    return write


CURVE_FILES = {
    "columns.csv": "order,epsilon\n1.5,0.31\n2,0.42\n64,2.9\ninf,3.1\n",
    "alphas.csv": "Alpha;RDP;noise\n64;2.9;1\n2;0.42;1\n1.5;.31;1\nInfinity;3.1;1\n",
    "tabs.tsv": "# from an accountant\norder\trdp\n1.5\t31e-2\n\n2\t0.42\n64\t2.9\ninf\t3.1\n",
    "bom.csv": "\ufefforder,epsilon\r\n1.5,0.31\r\n2,0.42\r\n64,2.9\r\ninf,3.1\r\n",
    "quoted.csv": '"order","epsilon"\n"1.5","0.31"\n2,0.42\n64,2.9\ninf,3.1\n',
    "lists.json": '{"alphas": [1.5, 2, 64, Infinity], "rdp": [0.31, 0.42, 2.9, 3.1], "sampled": true}',
    "pairs.json": "[[2, 0.42], [1.5, 0.31], [64, 2.9], [Infinity, 3.1]]",
    "mappings.json": '[{"order": 1.5, "eps": 0.31}, {"order": 2, "eps": 0.42}, {"order": 64, "eps": 2.9},'
    ' {"order": "inf", "eps": 3.1}]',
    "keys.json": '{"1.5": 0.31, "2": 0.42, "64.0": 2.9, "inf": 3.1}',
    "keys.yaml": "1.5: .31\n2: 42e-2\n64: 2.9\n.inf: 3.1\n",
    "mappings.yaml": "- {order: 1.5, rdp: 0.31}\n- order: 2\n  rdp: 0.42\n- {order: 64, rdp: 2.9}\n"
    "- {order: .inf, rdp: 3.1}\n",
    "wrapped.yml": "rdp:\n- {order: 1.5, epsilon: 0.31}\n- {order: 2, epsilon: 0.42}\n- [64, 2.9]\n- [inf, 3.1]\n",
    "bound.yaml": "epsilon: 4.2\ndelta: 1e-6\nrdp: [[1.5, 0.31], [2, 0.42], [64, 2.9], [.inf, 3.1]]\n",
    "nameless": '{"orders": [1.5, 2, 64, "inf"], "epsilon": [0.31, 0.42, 2.9, 3.1]}',
    "nameless2": "orders: [1.5, 2, 64, inf]\nepsilon: [0.31, 0.42, 2.9, 3.1]\n",
    "nameless3": "order,epsilon\n1.5,0.31\n2,0.42\n64,2.9\ninf,3.1",
    "bare.csv": "1.5,0.31\n2,0.42\n64,2.9\ninf,3.1\n",
    "commas.csv": "1,5;0,31\n2;4,2e-1\n64;2,9\ninf;3,1\n",
    "commas.txt": "order;epsilon\n1,5;0,31\n2;0,42\n64;2,9\ninf;3,1\n",
    "again.csv": "order,epsilon\n2,0.42\n1.5,0.31\n2,0.42\n64,2.9\ninf,3.1\n",
    "anchor.yaml": "- [1.5, &a 0.31]\n- [2, 0.42]\n- [64, 2.9]\n- [.inf, 3.1]\n- [1.5, *a]\n",
}


@pytest.mark.parametrize("name", CURVE_FILES)
def test_curves_are_read_from_every_shape(write, name):
    curve = read_rdp(write(CURVE_FILES[name], name))
    assert curve == CURVE
    assert list(curve) == sorted(curve)


def test_what_dp_accounting_dumps(write):
    """As the manual page shows it."""
    accounting = pytest.importorskip("dp_accounting")
    acc = pytest.importorskip("dp_accounting.rdp").RdpAccountant()
    step = accounting.PoissonSampledDpEvent(0.01, accounting.GaussianDpEvent(1.0))
    acc.compose(accounting.SelfComposedDpEvent(step, 1000))
    curve = read_rdp(write(json.dumps({"order": acc.orders.tolist(), "epsilon": acc.rdp.tolist()}), "curve.json"))
    assert list(curve) == acc.orders.tolist()
    epsilon = epsilon_at(RDPCurve(curve), math.log(1e-5), "cks").value
    assert epsilon == pytest.approx(acc.get_epsilon(1e-5), rel=1e-9)
    assert epsilon >= epsilon_at(DPSGD(0.01, 1.0, 1000), math.log(1e-5), "cks").value


def test_an_order_of_one_is_left_out_with_a_warning(write):
    curve = read_rdp(write("order,epsilon\n1,0.05\n2,0.1\n", "c.csv"))
    assert (curve, [text[:7] for text in curve.warnings]) == ({2.0: 0.1}, ["order 1"])


def test_a_curve_that_falls_takes_the_smallest_value_of_a_larger_order(write):
    curve = read_rdp(write("1.5: 0.3\n1.9: 0.52\n2: 0.34\n3: 0.5\n", "c.yaml"))
    assert RDPCurve(curve).rdp([1.5, 1.9, 2.0, 3.0]).tolist() == [0.3, 0.34, 0.34, 0.5]
    assert len(curve.warnings) == 1
    assert "falls" in curve.warnings[0]
    # what is smaller at a larger order is a bound of every smaller one
    assert RDPCurve(parse_rdp_text("4:1,8:0.5")).rdp([4.0, 8.0]).tolist() == [0.5, 0.5]
    # the same curve converted at a delta of 1e-5 falls over many orders, then rises
    rho, log_delta = 0.1, math.log(1e-5)
    rows = [(order, rho * order - log_delta / (order - 1.0)) for order in (1.25, 1.5, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)]
    for some in (rows, rows[2:], rows[3:]):
        with pytest.raises(InvalidInput, match="converted at a delta"):
            read_rdp(write("".join(f"{order}: {value}\n" for order, value in some)))


def test_answers_of_hpcalc_are_read(write):
    answer = {"hpcalc_version": "0.2.0", "command": "bound", "epsilon": 4.2, "delta": 1e-6}
    curve = [{"order": 1.5, "epsilon": 0.31}, {"order": 2, "epsilon": 0.42}, {"order": 64, "epsilon": None}]
    for suffix, text in (("json", json.dumps), ("yaml", yaml_text)):
        bound_file = write(text({**answer, "rdp": curve}), f"b.{suffix}")
        assert read_rdp(bound_file) == {1.5: 0.31, 2.0: 0.42}
        assert read_profile(bound_file) == {4.2: 1e-6}
        to = {"hpcalc_version": "0.2.0", "from": {"zcdp": 0.1}, "to": {"kind": "rdp", "orders": curve[:2]}}
        assert read_rdp(write(text(to), f"c.{suffix}")) == {1.5: 0.31, 2.0: 0.42}
        to = {"to": {"kind": "approx-dp", "epsilon": 9.0, "delta": None, "log10_delta": -400.0}}
        assert read_profile(write(text(to), f"c.{suffix}")) == {9.0: 5e-324}
        with pytest.raises(InvalidInput, match="several cases"):
            read_rdp(write(text({"cases": [answer]}), f"d.{suffix}"))


def test_points_on_the_command_line():
    assert parse_rdp_text("2:1,inf:1") == {2.0: 1.0, math.inf: 1.0}
    assert parse_rdp_text(" 1e1 : 5e-1 ,2:.25") == {2.0: 0.25, 10.0: 0.5}
    for text in ("", "2:nan,4:1", "1:1", "0.9:1", "2:-1", "2", "2:1:3", "2:1,,4:2", "2:1,2:3", "x:1", "2:1e999"):
        with pytest.raises(InvalidInput) as caught:
            parse_rdp_text(text)
        assert caught.value.parameter == "rdp"


PROFILE_FILES = {
    "a.csv": "epsilon,delta\n0,0.1\n2,1e-9\n1,1e-3\n",
    "b.json": '{"epsilon": [0, 1, 2], "delta": [0.1, 1e-3, 1e-9]}',
    "c.yaml": "profile:\n- {epsilon: 0.0, delta: 0.1}\n- {epsilon: 1.0, delta: 1e-3}\n- [2, 1.0e-9]\n",
    "d.yaml": "0: 0.1\n1: 1e-3\n2: 1e-9\n",
}


@pytest.mark.parametrize("name", PROFILE_FILES)
def test_profiles_are_read_from_every_shape(write, name):
    assert read_profile(write(PROFILE_FILES[name], name)) == {0.0: 0.1, 1.0: 1e-3, 2.0: 1e-9}


@pytest.mark.parametrize("suffix", ["yaml", "json", "csv", "out"])
def test_what_is_written_is_read_back(write, suffix):
    points = [
        {"epsilon": 0.0, "delta": 0.12345678901234567, "log10_delta": -0.9084850188786497},
        {"epsilon": 1e-05, "delta": 1e-300, "log10_delta": -300.0},
        {"epsilon": 50.0, "delta": None, "log10_delta": -534.1983712},
    ]
    text = points_text(f"x.{suffix}", "profile", points)
    assert read_profile(write(text, f"x.{suffix}")) == {0.0: 0.12345678901234567, 1e-05: 1e-300, 50.0: 5e-324}
    if suffix != "csv":
        assert (json.loads if suffix == "json" else yaml.safe_load)(text) == {"profile": points}
    curve = [{"order": 1.5, "epsilon": 1e-20}, {"order": 1e6, "epsilon": 7.0}, {"order": math.inf, "epsilon": 7.5}]
    text = points_text(f"y.{suffix}", "rdp", curve)
    assert read_rdp(write(text, f"y.{suffix}")) == {1.5: 1e-20, 1e6: 7.0, math.inf: 7.5}
    assert "Infinity" not in text


BOUNDED = (TruncatedNegativeBinomial.with_mean(10.0, eta=0.0), 1e-6)
LIKELY = (Poisson(3.0), 1e-3)
SEARCHES = (
    (PureDP(1.0), *BOUNDED),
    (Gaussian(2.0), *LIKELY),
    (ApproxDP(0.5, 1e-8), *BOUNDED),
    (RDPCurve({1.5: 0.1, 2.0: 0.2, 8.0: 1.0, 32.0: 4.5}), *LIKELY),
    (ProfileCurve({0.0: 0.1, 1.0: 1e-3, 2.0: 1e-9}), *BOUNDED),
    (compose(DPSGD(0.01, 1.0, 100), Gaussian(20.0), ApproxDP(0.1, 1e-9)), *LIKELY),
)


@pytest.mark.slow
@pytest.mark.parametrize(("base", "law", "delta"), SEARCHES, ids=repr)
def test_the_search_is_read_back_as_good_as_it_was(write, base, law, delta):
    answer = bound(base, law, delta=delta, lower=False)
    elsewhere = bound(base, law, delta=10.0 * delta, lower=False).epsilon
    points, curve = answer.profile(), answer.rdp_export()
    rdp = min((row.epsilon for row in answer.bounds if row.method != "refined-region"), default=math.inf)
    back = ProfileCurve(read_profile(write(points_text("p.csv", "profile", points), "p.csv")))
    again = epsilon_at(back, math.log(delta)).value
    # the convex hull of certified points, each right to 1e-4, may be a little below the answer
    assert answer.epsilon * (1.0 - 1e-4) <= again <= answer.epsilon * (1.0 + 1e-9) + 1e-12
    assert epsilon_at(back, math.log(10.0 * delta)).value >= elsewhere * (1.0 - 2e-4)  # on a chord
    points_back = read_rdp(write(points_text("r.yaml", "rdp", curve), "r.yaml"))
    wanted = {row["order"]: math.inf if row["epsilon"] is None else row["epsilon"] for row in curve}
    assert points_back == wanted
    if base.slack > 0.0 or isinstance(base, ProfileCurve):
        assert set(wanted.values()) == {math.inf}  # then no Rényi curve exists
    else:  # the bound may count events where a reader of the curve cannot
        assert epsilon_at(RDPCurve(points_back), math.log(delta)).value <= rdp * 1.05 + 1e-9


def test_a_positive_number_never_becomes_zero(write):
    assert read_profile(write("epsilon,delta\n0,0.5\n9,1e-400\n", "f.csv"))[9.0] > 0.0
    assert read_rdp(write("order,epsilon\n2,1e-400\n", "f.csv"))[2.0] > 0.0
    assert read_profile(write("epsilon,delta\n0,0.5\n9,0\n", "f.csv"))[9.0] == 0.0


def test_laws_of_the_number_of_runs(write):
    law = {1: 0.5, 4: 0.25, 16: 0.25}
    for name, text in {
        "a.yaml": "{1: 0.5, 4: 0.25, 16: 0.25}",
        "b.json": '{"1": 0.5, "16": 0.25, "4": 0.25}',
        "c.csv": "k,probability\n1,0.5\n4,.25\n16,25e-2\n",
        "d.json": "[[1, 0.5], [4, 0.25], [16, 0.25]]",
        "e.yaml": "- {k: 1, p: 0.5}\n- {k: 4, p: 0.25}\n- {k: 1.6e1, p: 0.25}\n",
    }.items():
        assert read_pmf(write(text, name)) == law, name
    assert read_pmf(write("[0.1, 0.4, 0.5]", "list.json")) == {0: 0.1, 1: 0.4, 2: 0.5}
    wrong = "1: 0.5/1: 0.5\n2: 0.6/1: nan\n2: 1/1.5: 1/-1: 1/1: 2\n2: -1/1: 0.5\n1: 0.5/[]/{}"
    for text in wrong.split("/"):
        with pytest.raises(InvalidInput):
            FinitePmf(read_pmf(write(text)))


TABLE = "run, accuracy,loss\n1,0.91,0.3\n2,0.93,0.2\n"
CRASHED = "run,accuracy\n1,0.9\n2,\n3,nan\n4,0.7\n"


@pytest.mark.parametrize(
    ("name", "text", "asked", "wanted"),
    [
        ("s.txt", "0.91\n0.93\n\n.9\n9e-1", {}, [0.91, 0.93, 0.9, 0.9]),
        ("s.csv", TABLE, {"column": "accuracy"}, [0.91, 0.93]),
        ("s.csv", TABLE, {"column": "Loss"}, [0.3, 0.2]),
        ("s.csv", TABLE, {"column": "acuracy"}, "run, accuracy, loss"),
        ("s.csv", TABLE, {}, "--column"),
        ("s.csv", "accuracy\n0.5\n0.6\n", {}, [0.5, 0.6]),
        ("s.json", "[0.5, 1e-1]", {}, [0.5, 0.1]),
        ("s.yaml", "a: [0.5, 1e-1]\nb: [1, 2]", {"column": "b"}, [1.0, 2.0]),
        ("s.json", '[{"acc": 0.5}, {"acc": 0.6}]', {"column": "acc"}, [0.5, 0.6]),
        ("s.csv", CRASHED, {"column": "accuracy"}, "--missing"),
        ("s.csv", CRASHED, {"column": "accuracy", "missing": "skip"}, [0.9, 0.7]),
        ("s.csv", CRASHED, {"column": "accuracy", "missing": "worst"}, [0.9, 0.7, 0.7, 0.7]),
        ("s.csv", CRASHED, {"column": "accuracy", "missing": "worst", "minimize": True}, [0.9, 0.7, 0.9, 0.9]),
        ("s.json", '{"lr=0.1": 0.9, "lr=0.3": null, "lr=1": 0.8}', {"missing": "skip"}, [0.9, 0.8]),
        *(
            ("s.txt", text, {}, "s.txt")
            for text in ("0.5\nnan\n", "0.5\ninf\n", "0.5\n0,6\n", "accuracy\n", "0.5\n\n--\n")
        ),
    ],
)
def test_scores(write, name, text, asked, wanted):
    path = write(text, name)
    if isinstance(wanted, list):
        assert read_scores(path, **asked) == wanted
    else:
        with pytest.raises(InvalidInput, match=wanted):
            read_scores(path, **asked)


def test_trials_as_optuna_writes_them(write):
    header = "number,value,datetime_start,datetime_complete,duration,params_lr,state\n"
    rows = (
        "0,0.91,2026-01-01 10:00:00,2026-01-01 10:05:00,0 days 00:05:00,0.1,COMPLETE\n",
        "1,0.95,2026-01-01 10:05:00,2026-01-01 10:10:00,0 days 00:05:00,0.3,TrialState.COMPLETE\n",
        "2,0.99,2026-01-01 10:10:00,2026-01-01 10:15:00,0 days 00:05:00,0.3,PRUNED\n",
        "3,,2026-01-01 10:15:00,,,0.9,FAIL\n",
    )
    assert read_scores(write(header + "".join(rows[:2]), "t.csv")) == [0.91, 0.95]
    whole = write(header + "".join(rows), "t.csv")
    assert read_scores(whole, missing="worst") == [0.91, 0.95, 0.91, 0.91]
    assert read_scores(whole, missing="skip") == [0.91, 0.95]
    assert read_scores(whole, "params_lr") == [0.1, 0.3, 0.3, 0.9]
    with pytest.raises(InvalidInput, match="line 4: a score is missing"):
        read_scores(whole)


def test_histories_as_opacus_keeps_them(write):
    entries = [[1.1, 0.0042667, 14062], [0.9, 0.01, 100]]
    wanted = [(0.0042667, 1.1, 14062), (0.01, 0.9, 100)]
    assert read_history(write(json.dumps({"history": entries, "mechanism": "rdp"}), "h.json")) == wanted
    assert read_history(write(json.dumps(entries), "h.json")) == wanted
    for text, expected in (
        ('{"mechanism": "rdp"}', "no key history"),
        ("[]", "empty"),
        ("[[1.1, 0.01]]", "noise, rate, steps"),
        (
            '[[1.1, 0.01, "many"]]',
            "line 1: the number of steps must be a finite decimal number",
        ),
        ("[[0.01, 1.1, 100]]", "noise, rate, steps"),
        ("[[1.1, 0.01, 1.5]]", "whole number"),
    ):
        with pytest.raises(InvalidInput, match=expected):
            read_history(write(text, "h.json"))


def test_json_is_read_as_it_is(write):
    tree = read_tree(Source("spec", write('{\n\t"a\\/\\ud83d\\ude00": [1e-6, null],\n\t"b": "null"}', "x.json")))
    (key, values), (_, word) = tree.children
    assert key.text == "a/\U0001f600"
    assert (values.children[0].numeric, values.children[1].empty, word.empty) == (True, True, False)
    assert (key.line, word.line) == (2, 3)
    with pytest.raises(InvalidInput, match=r"line 3: b: given twice \(first on line 2\)"):
        read_tree(Source("spec", write("a: 1\nb: 2\nb: 2\n")))


REFUSED = {
    "order,epsilon\n2,0.4\n2,0.5\n": "twice",
    "order,epsilon\n2,0.5\n4,0.4\n8,0.6\n": "converted at a delta",
    "order,epsilon\n2,nan\n4,0.4\n": "line 2: epsilon at order 2 must be a finite decimal number",
    "order,epsilon\n2,0.1\n4,-0.4\n": "line 3: epsilon -0.4 at order 4 is negative",
    "order,epsilon\n1,0.1\n": "order 1.0",
    "order,epsilon\nnan,0.1\n": "line 2: order must be a finite decimal number",
    "order,epsilon\n2,about half\n": "line 2",
    'order,epsilon\n2,"0,5"\n': "decimal number",
    "2,0.5,1\n3,0.6,1\n": "name the columns",
    "epsilon,delta\n2,0.5\n": "call it order",
    "order,epsilon,rdp\n2,0.5,0.5\n": "keep one",
    "order,epsilon\n2\n": "line 2: 1 cells",
    " \n": "empty",
    "# nothing\n": "empty",
    "order,epsilon\n": "no rows",
}


@pytest.mark.parametrize("text", REFUSED)
def test_refusals_are_told_apart(write, text):
    with pytest.raises(InvalidInput, match=rf"curve\.csv.*{REFUSED[text]}"):
        read_rdp(write(text, "curve.csv"))


@pytest.mark.parametrize("rows", ["1,1e-9\n2,1e-3", "-1,0.5", "1,1.5", "1,-1e-9", "1,nan"])
def test_a_profile_must_not_rise(write, rows):
    with pytest.raises(InvalidInput, match="never increases" if "\n" in rows else "p.csv"):
        read_profile(write(f"epsilon,delta\n{rows}\n", "p.csv"))


def test_unreadable_files_are_file_errors(tmp_path):
    for path in (tmp_path / "missing.csv", tmp_path, "nul\0byte"):
        with pytest.raises(DataFileError) as caught:
            read_rdp(str(path))
        assert "\n" not in str(caught.value)


# -- files that must be refused ---------------------------------------------------------------------------------------

_LISTS = json.dumps({"alphas": [1.5, 2.25, 3.125, 44.5], "rdp": [0.1, 0.2, 0.3, 0.45]})
_POINTS = "[[2, 0.1], [{}, 1.1], [4, {}]]"
_WRONG = ("true", "null", '"half"', "[]", "{}", "[0.1]", '{"a": 1}', '"0x10"', '"1_0"', "false", '"１.5"')
_ROWS = "order\tepsilon\n2\t0.2\n%s\t%s\n4\t0.4\n8\t0.8\n"
_VALUES = (
    "nan 1/3 nan/3 .nan/0.5 1/-2 1/3 -1e-9/3 -inf/-inf 1/ 1/3 /3 1,5/3 0.1.2/3 1e/3 --1/2 7/3 0.01/3 007/0x3 1/3 ٣"
)
_TEXT = "order,epsilon\n2,0.1\n3,0.2\n# café\n"
_BOMB = ["a0: &a0 [2, 3]", *(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 20))]
# kind -> the name's ending and contents
MALFORMED: dict[str, tuple[str, list[str | bytes]]] = {
    "truncated": ("json", [_LISTS[:n] for n in range(1, len(_LISTS), 5)]),
    "truncated yaml": ("yaml", ["alphas: [1.5, 2]\nrdp: [0.1, 0.2]\n"[:n] for n in range(1, 28, 3)]),
    "wrong type": ("yaml", [_POINTS.format(*pair) for one in _WRONG for pair in ((one, "1"), ("3", one))]),
    "wrong root": ("json",
        ["3", '"text"', "null", "true", "[]", "{}", "[1, 2, 3]", "[[1, 2, 3]]", '{"a": 1}', "[[[2, 1]]]"]),
    "wrong encoding": ("csv",
        [_TEXT.encode(code) for code in ("utf-16", "latin-1", "utf-32")] + [b"\xff" + _TEXT.encode()]),
    "binary": ("csv", [bytes(range(256)), b"order,epsilon\n2,\0"]),
    "huge": ("yaml", [f"- [2, 0.1]\n- [3, {number}]\n" for number in ("1e999", "9" * 400, "-1e400", "1e99999")]),
    "deep": ("json", ["[" * 20000, "[" * 99 + "1" + "]" * 99, '{"a":' * 5000, '{"a":' * 50 + "1" + "}" * 50]),
    "bomb": ("yaml", ["\n".join(_BOMB)]),
    "tag": ("yaml",
        [f"- [2, 0.1]\n- [3, {tag}]\n" for tag in ("!!python/object/apply:os.system [a]", "!own 3", "!!binary aGk=")]),
    "recursive": ("yaml", ["&a [*a]", "&a {order: *a}", "- &x [2, *x]", "- [2, *unknown]", "*a"]),
    "value": ("tsv", [_ROWS % tuple(pair.split(" ", 1)) for pair in _VALUES.split("/")]),
    "lengths": ("json", ['{"alphas": [2, 3], "rdp": [1]}', '{"alphas": [], "rdp": []}', '{"alphas": [2]}']),
    "columns": ("csv",
        [f"{pair}\n2,0.1\n3,0.2\n" for pair in ("order,delta", "x,y", "epsilon,rdp", "order,order", "alpha,order")]),
    "documents": ("yaml",
        ["[[2, 1]]\n---\n[[2, 1]]\n", "---\n...\n---\n", "%YAML 9.9\n--- 1", "a: b: c", "- [2, 1\n", "\t- 1"]),
    "base 60": ("yaml", [f"- [2, 0.1]\n- [{number}, 0.2]\n" for number in ("1:30", "0:30", "12:30:45", "190:20:30.5")]),
    "unclosed quote": ("csv", ['order,epsilon\n2,"0.1\n', 'order,epsilon\n2,"0.1\n3,0.2\n']),
}  # fmt: skip


@pytest.mark.parametrize("kind", MALFORMED)
def test_malformed_files_are_refused_in_one_clear_line(write, kind, capsys):
    suffix, contents = MALFORMED[kind]
    for content in contents:
        path = write(content, f"m.{suffix}")
        with pytest.raises((InvalidInput, DataFileError)) as caught:
            read_rdp(path)
        text = str(caught.value)
        assert text.isprintable()
        assert len(text) < 600
        assert f"m.{suffix}" in text
    for option in ("--rdp-file", "--profile-file"):  # the last of them
        assert main(["convert", option, path, "--delta", "1e-6"]) in (2, 4)
        out, err = capsys.readouterr()
        assert out == ""
        assert len(err.splitlines()) == 1
        assert option in err
        assert path in err


@pytest.mark.slow
def test_damaged_files_are_refused_or_still_curves(write):
    rng = random.Random(20220)
    names = [name for name in CURVE_FILES if name.rpartition(".")[2] in ("csv", "json", "yaml")]
    for _ in range(300):
        name = rng.choice(names)
        data = bytearray(CURVE_FILES[name].encode())
        for _ in range(rng.randrange(1, 6)):
            at = rng.randrange(len(data))
            new = rng.choice(b",;:[]{}-#&*!'\"\n\t e.0123456789\xff")
            data[at : at + rng.randrange(3)] = bytes([new])[: rng.randrange(2)]
            data = data or bytearray(b"x")
        path = write(bytes(data), f"d-{name}")
        for read in (read_rdp, read_profile, read_pmf, read_scores):
            try:
                answer = read(path)
            except HpcalcError:
                continue
            assert not any(math.isnan(value) for value in (answer.values() if isinstance(answer, dict) else answer))
            if read is read_rdp:
                assert all(order > 1.0 and value >= 0.0 for order, value in answer.items())


def test_alias_bombs_and_large_files_cost_little(write):
    path = write("\n".join(_BOMB))
    tracemalloc.start()
    with pytest.raises(InvalidInput):
        read_rdp(path)
    assert tracemalloc.get_traced_memory()[1] < 20e6
    tracemalloc.stop()
    with pytest.raises(InvalidInput, match="larger than"):
        read_rdp(write(b"order,epsilon\n" + b"2,1\n" * 5_000_000, "large.csv"))
