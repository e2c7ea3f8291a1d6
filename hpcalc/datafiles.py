"""What a file of data means: Rényi curves, privacy profiles, laws of K, scores, training histories.

Every shape is brought into rows of named values first, whoever wrote the file. What is harmless is put right, with a
warning where the reader should know; what is not is refused.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence

from hpcalc.errors import InvalidInput
from hpcalc.files import SMALLEST, Node, Source, read_tree, shown

# what a column holds -> names it goes by; the first two columns are needed
_RENYI = {"order": ("order", "orders", "alpha", "alphas", "lambda"),
          "Rényi divergence": ("rdp", "epsilon", "eps", "epsilons", "rdp_epsilon")}  # fmt: skip
_PROFILE = {"epsilon": ("epsilon", "eps", "epsilons"), "delta": ("delta", "deltas"), "log10_delta": ("log10_delta",)}
_PMF = {"number of runs": ("k", "runs", "value"), "probability": ("probability", "p", "prob", "pmf", "probabilities")}
# keys under which points stand, hpcalc's own answers included
_WRAPPERS = {
    "rdp_file": ("to", "rdp", "orders", "points", "curve", "data"),
    "profile_file": ("to", "profile", "points", "curve", "data"),
    "pmf": ("pmf", "points", "data"),
}
_NOTHING = Node("scalar", 0)

Columns = Mapping[str, tuple[str, ...]]
Row = tuple[Node, ...]


class Points(dict[float, float]):
    """Points of a curve in increasing order, and what the reader of the file should know about them."""

    warnings: Sequence[str] = ()


def _picked(source: Source, item: Node, columns: Columns) -> Row:
    """The value of a mapping for each column; nothing where a third has none."""
    picked: list[Node] = []
    for what, wanted in columns.items():
        hits = [pair for pair in item.children if pair[0].key in wanted]
        if len(hits) > 1:
            both = " and ".join(shown(name.text) for name, _ in hits[:2])
            source.refuse(f"has two columns for the {what}, {both}: keep one", hits[0][0])
        if not hits and len(picked) < 2:
            have = ", ".join(shown(name.text) for name, _ in item.children[:8]) or "none"
            source.refuse(f"no column for the {what}: call it {' or '.join(wanted[:3])} (columns: {have})",
                          item.children[0][0] if item.children else 0)  # fmt: skip
        picked.append(hits[0][1] if hits else _NOTHING)
    return tuple(picked)


def _rows(source: Source, node: Node, columns: Columns) -> Sequence[Row]:
    """Values of the wanted columns, row by row: from mappings, pairs, two lists, or a mapping of numbers to numbers."""
    if node.kind == "mapping":
        return _of_mapping(source, node, columns)
    source.require(node.kind == "list", "expected a list of points", node)
    source.require(node.children, "holds no points", node)
    first, second = (names[0] for names in list(columns.values())[:2])
    rows = []
    for item in node.children:
        source.require(item.kind != "scalar", f"a point must be a pair or {{{first}: ..., {second}: ...}}", item)
        if item.kind == "list":
            many = f"{len(item.children)} values where a pair is expected"
            source.require(len(item.children) == 2, f"{many}: give {first},{second}, or name the columns", item)
        rows.append(_picked(source, item, columns) if item.kind == "mapping" else (*item.children, _NOTHING))
    return rows


def _of_mapping(source: Source, node: Node, columns: Columns) -> Sequence[Row]:
    """The points of a mapping: under a key, of lists by their names, of one point, or of numbers to numbers."""
    values = {name.key: value for name, value in node.children}
    source.require("cases" not in values, "holds several cases: keep one", node)
    for wrapper in _WRAPPERS[source.parameter]:
        inner = values.get(wrapper, _NOTHING)
        if inner.kind == "mapping" or any(item.kind != "scalar" for item in inner.children):
            rows = _rows(source, inner, columns)
            # an answer of hpcalc says null where nothing is known
            return [row for row in rows if "hpcalc_version" not in values or any(not one.empty for one in row[1:])]
    source.require(node.children, "holds no points", node)
    firsts, seconds, *_ = columns.values()
    if values.keys().isdisjoint(firsts):
        for name, _ in node.children:
            known = f"'{firsts[0]}' and '{seconds[0]}', or a mapping of numbers to numbers"
            source.require(name.numeric, f"unknown key {shown(name.text)}: give {known}", name)
        return [(*pair, _NOTHING) for pair in node.children]
    picked = _picked(source, node, columns)
    if all(value.kind == "scalar" for value in picked):
        return [picked]  # as an answer of hpcalc states it
    lists = [value for value in picked if value is not _NOTHING]
    source.require(all(value.kind == "list" for value in lists), "expected one list for each column", node)
    lengths = [len(value.children) for value in lists]
    source.require(len(set(lengths)) == 1, f"the lists have different lengths ({', '.join(map(str, lengths))})", node)
    source.require(lengths[0], "holds no points", node)
    return [*zip(*(value.children or (_NOTHING,) * lengths[0] for value in picked), strict=True)]


def read_rdp(path: str) -> Points:
    """Points of a Rényi curve: order (``inf``: pure differential privacy) to ε (``inf``: nothing is known)."""
    source = Source("rdp_file", path)
    return _curve(source, _rows(source, read_tree(source), _RENYI))


def parse_rdp_text(text: str) -> Points:
    """Points written as ``ORDER:EPSILON,...``, such as ``2:0.25,inf:3``."""
    source, rows = Source("rdp", text), list[Row]()
    for piece in str(text).split(","):
        order, colon, value = piece.partition(":")
        if not colon or ":" in value:
            source.refuse(f"{shown(piece.strip()) or 'an empty entry'}: write ORDER:EPSILON,... such as 2:0.25,inf:3")
        rows.append((Node("scalar", 0, order), Node("scalar", 0, value)))
    return _curve(source, rows)


def _curve(source: Source, rows: Iterable[Row]) -> Points:
    points: dict[float, float] = {}
    for order_node, value_node, *_ in rows:
        order = source.number(order_node, "order", infinite=True)
        source.require(order >= 1.0, f"order {order!r}: Rényi orders are larger than 1", order_node)
        value = source.number(value_node, f"epsilon at order {order:g}", infinite=True)
        negative = f"epsilon {value!r} at order {order:g} is negative: a Rényi divergence never is"
        source.require(value >= 0.0, negative, order_node)
        _keep(source, points, "order", order, value, order_node)
    told = "order 1 (the Kullback-Leibler divergence) is left out: Rényi orders are larger than 1"
    warnings = [] if points.pop(1.0, None) is None else [told]
    source.require(points, "order 1.0: Rényi orders are larger than 1")
    curve = Points(sorted(points.items()))
    curve.warnings = [*warnings, *_falling(source, curve)]
    return curve


def _keep(source: Source, points: dict[float, float], what: str, x: float, y: float, at: Node) -> None:
    same = points.setdefault(x, y) == y
    source.require(same, f"{what} {x:g} is given twice with different values ({points[x]!r} and {y!r}): keep one", at)


def _falling(source: Source, curve: Points) -> list[str]:
    """What to say of a curve that falls as the order grows, which a divergence never does.

    An ε that was converted at a δ falls over several orders, as log(1/δ)/(order - 1) does, and rises after that,
    (order - 1) ε being convex: that is another quantity and refused. Below order 2 an accountant may fall as well,
    where its formula is another one.
    """
    known = [(order, value) for order, value in curve.items() if math.isfinite(value)]
    # accountants differ in the last digits from order to order
    falls = [(one, other) for one, other in itertools.pairwise(known) if other[1] < one[1] * (1.0 - 1e-6)]
    if not falls:
        return []
    (low, before), (high, after) = falls[0]
    far = any(one[0] >= 2.0 and other[1] < one[1] * (1.0 - 1e-3) for one, other in falls)
    if far and known[-1][1] > falls[-1][1][1]:
        source.refuse(
            f"epsilon falls from {before!r} at order {low:g} to {after!r} at order {high:g} and rises later: so does "
            "an epsilon converted at a delta, a Rényi divergence does not: give RDP values"
        )
    return [
        f"the Rényi curve falls from {before:.6g} at order {low:g} to {after:.6g} at order {high:g}, "
        "which a divergence does not: smaller orders take the smallest value of any larger one"
    ]


def read_profile(path: str) -> Points:
    """Points of a privacy profile: ε >= 0 to δ in [0, 1]; where ``delta`` is empty, ``log10_delta`` stands for it."""
    source = Source("profile_file", path)
    points: dict[float, float] = {}
    for epsilon_node, delta_node, log_node in _rows(source, read_tree(source), _PROFILE):
        epsilon = source.number(epsilon_node, "epsilon")
        source.require(epsilon >= 0.0, f"epsilon {epsilon!r} is negative: a profile starts at epsilon 0", epsilon_node)
        if delta_node.empty and not log_node.empty:
            log_delta = source.number(log_node, "log10_delta")
            # a delta below the smallest double is not zero: zero would claim pure differential privacy
            delta = max(10.0 ** max(min(log_delta, 1.0), -400.0), SMALLEST)
        else:
            delta = source.number(delta_node, f"delta at epsilon {epsilon:g}")
        legal = 0.0 <= delta <= 1.0
        source.require(legal, f"delta {delta!r} at epsilon {epsilon:g} is not between 0 and 1", epsilon_node)
        _keep(source, points, "epsilon", epsilon, delta, epsilon_node)
    profile = Points(sorted(points.items()))
    for (low, before), (high, after) in itertools.pairwise([(0.0, 1.0), *profile.items()]):
        if after > before * (1.0 + 1e-9):
            source.refuse(
                f"delta rises from {before!r} at epsilon {low:g} to {after!r} at epsilon {high:g}, "
                "but a privacy profile never increases: are the columns exchanged?"
            )
    return profile


def read_pmf(path: str) -> dict[int, float]:
    """Probabilities by the number of runs, of which a law is made and checked; a plain list begins at 0 runs."""
    source = Source("pmf", path)
    tree = read_tree(source)
    if tree.kind == "list" and all(item.kind == "scalar" for item in tree.children):
        pairs = ((Node("scalar", p.line, str(k)), p) for k, p in enumerate(tree.children))
        tree = Node("mapping", tree.line, children=tuple(pairs))
    law: dict[int, float] = {}
    for k_node, p_node, *_ in _rows(source, tree, _PMF):
        k = _whole(source, k_node, "the number of runs")
        p = source.number(p_node, f"the probability of {k} runs")
        source.require(0.0 <= p <= 1.0 + 1e-9, f"the probability {p!r} of {k} runs is not between 0 and 1", p_node)
        source.require(k not in law, f"{k} runs are given twice: keep one", k_node)
        law[k] = p
    return law


def _whole(source: Source, node: Node, what: str) -> int:
    number = source.number(node, what)
    source.require(0 <= number <= 1e15 and number == int(number), f"{what} {number!r}: give a whole number >= 0", node)
    return int(number)


def read_scores(
    path: str, column: str | None = None, missing: str | None = None, minimize: bool = False
) -> list[float]:
    """Scores of single runs; a missing one is refused, the ``worst`` (those come last), or one to ``skip``."""
    source, scores, lost = Source("scores", path), list[float](), 0
    for cell in _score_cells(source, read_tree(source), column):
        absent = cell.empty or (missing is not None and cell.text.strip().lower() in ("nan", ".nan", "none"))
        told = "a score is missing: --missing worst ranks the run last, --missing skip leaves it out"
        source.require(missing is not None or not absent, told, cell)
        lost += absent
        if not absent:
            scores.append(source.number(cell, "a score"))
    source.require(scores, "holds no scores")
    worst = max(scores) if minimize else min(scores)
    return scores + [worst] * (lost if missing == "worst" else 0)


def _score_cells(source: Source, tree: Node, column: str | None) -> Sequence[Node]:
    """The scores of a plain list, of a column, or of trials as Optuna writes them: only a COMPLETE one has a score."""
    items = tree.children
    lists = [pair for pair in items if tree.kind == "mapping" and pair[1].kind == "list"]
    if lists:
        columns: Sequence[Node] = lists[_pick(source, [name for name, _ in lists], column)][1].children
        return columns
    if tree.kind == "list" and items and items[0].kind == "mapping":  # a table
        names = [name for name, _ in items[0].children]
        trials = column is None and {"value", "state"} <= {name.key for name in names}
        wanted = "value" if trials else names[_pick(source, names, column)].key
        cells = []
        for item in items:
            source.require(item.kind == "mapping", "expected a list of mappings", item)
            row = {name.key: value for name, value in item.children}
            done = not trials or row.get("state", _NOTHING).text.rpartition(".")[2].upper() == "COMPLETE"
            cells.append(row[wanted] if done and wanted in row else Node("scalar", item.line))
        return cells
    if tree.kind == "list" and items and items[0].kind == "list":
        source.refuse("the first line must name the columns", items[0])
    source.require(tree.kind != "scalar" and items, "expected a list of numbers", tree)
    if column is not None:
        raise InvalidInput("column", column, f"{source.name} is a plain list of numbers: leave it out")
    return [item if tree.kind == "list" else item[1] for item in items]


def _pick(source: Source, names: Sequence[Node], column: str | None) -> int:
    have = ", ".join(shown(name.text) for name in names[:20])
    if column is None:
        if len(names) == 1:
            return 0
        source.refuse(f"has several columns: choose one with --column ({have})")
    hits = [i for i, name in enumerate(names) if name.text.strip() == column.strip()]
    hits = hits or [i for i, name in enumerate(names) if name.key == Node("scalar", 0, column).key]
    if len(hits) != 1:
        problem = "no column" if not hits else "several columns"
        raise InvalidInput("column", column, f"{source.name} has {problem} of that name: it has {have}")
    return hits[0]


def read_history(path: str) -> list[tuple[float, float, int]]:
    """Rate, noise and steps of every entry of Opacus' history, which is a list of ``[noise, rate, steps]``."""
    source = Source("history", path)
    tree = read_tree(source)
    if tree.kind == "mapping":
        values = {key.key: value for key, value in tree.children}
        told = "has no key history: give an Opacus state dict, or [[noise, rate, steps], ...]"
        source.require("history" in values, told, tree)
        tree = values["history"]
    filled = tree.kind == "list" and tree.children
    source.require(filled, "the history is empty: expected [[noise, rate, steps], ...]", tree)
    history = []
    for item in tree.children:
        source.require(item.kind == "list" and len(item.children) == 3, "an entry must be [noise, rate, steps]", item)
        noise, rate, steps = item.children
        sigma, share = source.number(noise, "the noise"), source.number(rate, "the sampling rate")
        source.require(sigma >= 0.0, f"the noise {sigma:g}: give a number >= 0", noise)
        told = f"the sampling rate {share:g} is not between 0 and 1: an entry is [noise, rate, steps]"
        source.require(0.0 < share <= 1.0, told, rate)
        history.append((share, sigma, _whole(source, steps, "the number of steps")))
    return history
