"""What a file of data means: Rényi curves, privacy profiles, laws of K, scores, candidates, training histories.

Every shape is brought into rows of named values first (:func:`_rows`), whoever wrote the file. What is harmless is put
right (order of the points, a point given twice alike, an order of 1) with a warning where the reader should know; what
is not is refused (a point given twice with different values, a profile that increases, negative values, NaN).

A reader raises :class:`~hpcalc.errors.DataFileError` where a file cannot be read and
:class:`~hpcalc.errors.InvalidInput` where its contents are not what they should be; the text names the line.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence

from hpcalc.errors import InvalidInput
from hpcalc.files import SMALLEST, Node, Source, read_tree, shown

__all__ = ["Points", "parse_rdp_text", "read_history", "read_pmf", "read_profile", "read_rdp", "read_scores"]

_ORDER = ("order", "orders", "alpha", "alphas", "lambda")
_RENYI = ("rdp", "epsilon", "eps", "epsilons", "rdp_epsilon")
_EPSILON = ("epsilon", "eps", "epsilons")
_DELTA = ("delta", "deltas")
_LOG_DELTA = ("log10_delta",)
_RUNS = ("k", "runs", "value")
_PROBABILITY = ("probability", "p", "prob", "pmf", "probabilities")
# keys under which points stand, hpcalc's own answers included
_WRAPPERS = {
    "rdp_file": ("to", "rdp", "orders", "points", "curve", "data"),
    "profile_file": ("to", "profile", "points", "curve", "data"),
    "pmf": ("pmf", "points", "data"),
}
_NOTHING = Node("scalar", 0)

Column = tuple[tuple[str, ...], str, bool]  # names, what it holds, whether it is needed
Row = tuple[Node, ...]


class Points(dict[float, float]):
    """Points of a curve in increasing order, and what the reader of the file should know about them."""

    def __init__(self, points: Mapping[float, float], warnings: Iterable[str] = ()) -> None:
        super().__init__(sorted(points.items()))
        self.warnings = list(warnings)


def _key(node: Node) -> str:
    return node.text.strip().lower().replace("-", "_").replace(" ", "_")


def _find(source: Source, names: Sequence[Node], column: Column) -> int:
    """Index of the one name that a column goes by; -1 where there is none and none is needed."""
    wanted, what, needed = column
    hits = [i for i, name in enumerate(names) if _key(name) in wanted]
    if len(hits) > 1:
        both = " and ".join(shown(names[i].text) for i in hits[:2])
        source.refuse(f"has two columns for the {what}, {both}: keep one", names[hits[0]])
    if not hits and needed:
        have = ", ".join(shown(name.text) for name in names[:8]) or "none"
        source.refuse(f"no column for the {what}: call it {' or '.join(wanted[:3])} (columns: {have})",
                      names[0] if names else 0)  # fmt: skip
    return hits[0] if hits else -1


def _rows(source: Source, node: Node, columns: Sequence[Column]) -> list[Row]:
    """Values of the wanted columns, row by row: from mappings, pairs, two lists, or a mapping of numbers to numbers."""
    if node.kind == "scalar":
        source.refuse("expected a list of points", node)
    if not node.children:
        source.refuse("holds no points", node)
    if node.kind == "mapping":
        return _from_mapping(source, node, columns)
    rows: list[Row] = []
    shape = "{" + ", ".join(f"{names[0]}: ..." for names, _, needed in columns if needed) + "}"
    for item in node.children:
        if item.kind == "mapping":
            keys = [name for name, _ in item.children]
            at = [_find(source, keys, column) for column in columns]
            rows.append(tuple(item.children[i][1] if i >= 0 else _NOTHING for i in at))
        elif item.kind == "list" and len(item.children) == 2:
            rows.append((*item.children, *(_NOTHING for _ in columns[2:])))
        elif item.kind == "list":
            pair = ",".join(names[0] for names, _, needed in columns if needed)
            source.refuse(
                f"{len(item.children)} values where a pair is expected: give {pair}, or name the columns", item
            )
        else:
            source.refuse(f"a point must be a pair or {shape}", item)
    return rows


def _from_mapping(source: Source, node: Node, columns: Sequence[Column]) -> list[Row]:
    names = [name for name, _ in node.children]
    values = {_key(name): value for name, value in node.children}
    if "cases" in values:
        source.refuse("holds several cases: keep one", node)
    own = "hpcalc_version" in values  # an answer of hpcalc says null where nothing is known
    for wrapper in _WRAPPERS.get(source.parameter, ()):
        inner = values.get(wrapper)
        nested = inner is not None and (
            inner.kind == "mapping" or (inner.kind == "list" and any(i.kind != "scalar" for i in inner.children))
        )
        if inner is not None and nested:
            rows = _rows(source, inner, columns)
            return [row for row in rows if not row[1].empty] if own else rows
    if {_key(name) for name in names} & set(columns[0][0]):
        at = [_find(source, names, column) for column in columns]
        found = [node.children[i][1] if i >= 0 else _NOTHING for i in at]
        if all(value.kind == "scalar" for value in found):
            return [tuple(found)]  # one point, as an answer of hpcalc states it
        for i, value in zip(at, found, strict=True):
            if i >= 0 and value.kind != "list":
                source.refuse(f"{shown(names[i].text)} must be a list", names[i])
        lengths = [len(value.children) for i, value in zip(at, found, strict=True) if i >= 0]
        if len(set(lengths)) != 1:
            source.refuse(f"the lists have different lengths ({', '.join(map(str, lengths))})", node)
        count = lengths[0]
        if not count:
            source.refuse("holds no points", node)
        lists = [value.children if i >= 0 else (_NOTHING,) * count for i, value in zip(at, found, strict=True)]
        return list(zip(*lists, strict=True))
    for name in names:
        if not name.numeric:
            options = " and ".join(f"'{columns[i][0][0]}'" for i in (0, 1))
            source.refuse(f"unknown key {shown(name.text)}: give {options}, or a mapping of numbers to numbers", name)
    return [(name, value, *(_NOTHING for _ in columns[2:])) for name, value in node.children]


def _add(source: Source, points: dict[float, float], x: float, y: float, what: str, at: Node) -> None:
    if x in points and points[x] != y:
        source.refuse(f"{what} {x:g} is given twice with different values ({points[x]!r} and {y!r}): keep one", at)
    points[x] = y


# -- Curves


def read_rdp(path: str) -> Points:
    """Points of a Rényi curve: order to ε; order ``inf`` is pure differential privacy, ε ``inf`` where nothing is
    known.

    The columns are ``order`` (or ``alpha``) and ``epsilon`` (or ``rdp``), named or not; an answer of ``hpcalc bound``
    or of ``hpcalc convert --to rdp`` is read too.
    """
    source = Source("rdp_file", path)
    columns: list[Column] = [(_ORDER, "order", True), (_RENYI, "Rényi divergence", True)]
    return _curve(source, _rows(source, read_tree(source), columns))


def parse_rdp_text(text: str) -> Points:
    """Points written as ``ORDER:EPSILON,...``.

    Examples
    --------
    >>> parse_rdp_text("4:0.5, 2:0.25, inf:3")
    {2.0: 0.25, 4.0: 0.5, inf: 3.0}
    """
    source = Source("rdp", text)
    rows: list[Row] = []
    for piece in str(text).split(","):
        order, colon, value = piece.partition(":")
        if not colon or ":" in value:
            source.refuse(f"{shown(piece.strip()) or 'an empty entry'}: write ORDER:EPSILON,... such as 2:0.25,inf:3")
        rows.append((Node("scalar", 0, order), Node("scalar", 0, value)))
    return _curve(source, rows)


def _curve(source: Source, rows: Iterable[Row]) -> Points:
    points: dict[float, float] = {}
    warnings = []
    for order_node, value_node, *_ in rows:
        order = source.number(order_node, "order", infinite=True)
        if order < 1.0:
            source.refuse(f"order {order!r}: Rényi orders are larger than 1", order_node)
        value = source.number(value_node, f"epsilon at order {order:g}", infinite=True)
        if value < 0.0:
            source.refuse(f"epsilon {value!r} at order {order:g} is negative: a Rényi divergence never is", order_node)
        if order == 1.0:
            warnings = ["order 1 (the Kullback-Leibler divergence) is left out: Rényi orders are larger than 1"]
        else:
            _add(source, points, order, value, "order", order_node)
    if not points:
        source.refuse("order 1.0: Rényi orders are larger than 1")
    curve = Points(points, warnings)
    _make_monotone(source, curve)
    return curve


def _make_monotone(source: Source, curve: Points) -> None:
    """Replace every value by the smallest at any larger order: a divergence never falls as the order grows.

    An accountant may fall below order 2, where its formula is another one: at one step, or along a curve whose
    (order - 1) ε is not convex. An ε that was converted at a δ falls over several orders, as log(1/δ)/(order - 1) does,
    and rises after that, (order - 1) ε being convex. That is another quantity and refused.
    """
    known = [(order, value) for order, value in curve.items() if math.isfinite(value)]
    # accountants differ in the last digits from order to order
    falls = [i for i in range(len(known) - 1) if known[i + 1][1] < known[i][1] * (1.0 - 1e-6)]
    if not falls:
        return
    (low, before), (high, after) = known[falls[0]], known[falls[0] + 1]
    far = [i for i in falls if known[i + 1][1] < known[i][1] * (1.0 - 1e-3)]
    rises = known[-1][1] > known[falls[-1] + 1][1]
    low_orders = [(order - 1.0, (order - 1.0) * value) for order, value in known if order <= 2.0]
    slopes = [(b[1] - a[1]) / (b[0] - a[0]) for a, b in itertools.pairwise(low_orders)]
    bent = any(right < left - 1e-3 * abs(left) for left, right in itertools.pairwise(slopes))
    if rises and any(known[i][0] >= 2.0 or (i + 1 in far and not bent) for i in far):
        source.refuse(
            f"epsilon falls from {before!r} at order {low:g} to {after!r} at order {high:g} and rises later: so does "
            "an epsilon converted at a delta, a Rényi divergence does not: give RDP values"
        )
    least = math.inf
    for order in reversed(list(curve)):
        least = curve[order] = min(curve[order], least)
    curve.warnings.append(
        f"the Rényi curve falls from {before:.6g} at order {low:g} to {after:.6g} at order {high:g}, "
        "which a divergence does not: smaller orders take the smallest value of any larger one"
    )


def read_profile(path: str) -> Points:
    """Points of a privacy profile: ε >= 0 to δ in [0, 1].

    The columns are ``epsilon`` and ``delta``, named or not; where ``delta`` is empty or null, ``log10_delta`` stands
    for it. What ``--profile-out`` writes is read back; an answer of ``hpcalc bound`` or ``hpcalc convert`` is one
    point.
    """
    source = Source("profile_file", path)
    points: dict[float, float] = {}
    columns: list[Column] = [(_EPSILON, "epsilon", True), (_DELTA, "delta", True), (_LOG_DELTA, "log10_delta", False)]
    for epsilon_node, delta_node, log_node in _rows(source, read_tree(source), columns):
        epsilon = source.number(epsilon_node, "epsilon")
        if epsilon < 0.0:
            source.refuse(f"epsilon {epsilon!r} is negative: a profile starts at epsilon 0", epsilon_node)
        if delta_node.empty and not log_node.empty:
            log_delta = source.number(log_node, "log10_delta")
            # a delta below the smallest double is not zero: zero would claim pure differential privacy
            delta = max(10.0 ** max(min(log_delta, 1.0), -400.0), SMALLEST)
        else:
            delta = source.number(delta_node, f"delta at epsilon {epsilon:g}")
        if not 0.0 <= delta <= 1.0:
            source.refuse(f"delta {delta!r} at epsilon {epsilon:g} is not between 0 and 1", epsilon_node)
        _add(source, points, epsilon, delta, "epsilon", epsilon_node)
    profile = Points(points)
    before = (0.0, 1.0)
    for epsilon, delta in profile.items():
        if delta > before[1] * (1.0 + 1e-9):
            source.refuse(
                f"delta rises from {before[1]!r} at epsilon {before[0]:g} to {delta!r} at epsilon {epsilon:g}, "
                "but a privacy profile never increases: are the columns exchanged?"
            )
        before = (epsilon, delta)
    return profile


# -- Laws of K, scores


def read_pmf(path: str) -> dict[int, float]:
    """A law of the number of runs: k (a whole number >= 0) to its probability; they sum to 1.

    A mapping, pairs, or the columns ``k`` and ``probability``; also a plain list, which begins at 0 runs.
    """
    source = Source("pmf", path)
    tree = read_tree(source)
    if tree.kind == "list" and tree.children and all(item.kind == "scalar" for item in tree.children):
        rows: list[Row] = [(Node("scalar", p.line, str(k)), p) for k, p in enumerate(tree.children)]
    else:
        rows = _rows(source, tree, [(_RUNS, "number of runs", True), (_PROBABILITY, "probability", True)])
    law: dict[int, float] = {}
    for k_node, p_node, *_ in rows:
        k = whole(source, k_node, "the number of runs", 0)
        p = source.number(p_node, f"the probability of {k} runs")
        if not 0.0 <= p <= 1.0 + 1e-9:
            source.refuse(f"the probability {p!r} of {k} runs is not between 0 and 1", p_node)
        if k in law:
            source.refuse(f"{k} runs are given twice: keep one", k_node)
        law[k] = p
    total = math.fsum(law.values())
    if abs(total - 1.0) > 1e-9:
        source.refuse(f"the probabilities sum to {total!r}, not to 1")
    return dict(sorted(law.items()))


def whole(source: Source, node: Node, what: str, least: int) -> int:
    """A whole number that is not smaller than ``least``."""
    number = source.number(node, what)
    if number < least or number != int(number) or number > 1e15:
        source.refuse(f"{what} {number!r}: give a whole number >= {least}", node)
    return int(number)


def read_scores(
    path: str, column: str | None = None, missing: str | None = None, minimize: bool = False
) -> list[float]:
    """Scores of single runs, at least one, in the order of the file.

    One number a line, a table with a header, a list, or trials as Optuna writes them (column ``value``; a trial whose
    ``state`` is not COMPLETE has no score). ``missing`` says what an empty cell stands for: ``worst``, a crashed run,
    takes the worst score of the file (the largest where ``minimize``), ``skip`` is no run at all; without it, it is
    refused.
    """
    source = Source("scores", path)
    cells = _score_cells(source, read_tree(source), column)
    scores: list[float | None] = []
    for cell in cells:
        absent = cell.empty or (missing is not None and cell.text.strip().lower() in ("nan", ".nan", "none"))
        if absent and missing is None:
            source.refuse("a score is missing: --missing worst ranks the run last, --missing skip leaves it out", cell)
        scores.append(None if absent else source.number(cell, "a score"))
    given = [score for score in scores if score is not None]
    if not given:
        source.refuse("holds no scores")
    if missing == "skip":
        return given
    worst = max(given) if minimize else min(given)
    return [worst if score is None else score for score in scores]


def _score_cells(source: Source, tree: Node, column: str | None) -> list[Node]:
    items = tree.children
    if tree.kind == "mapping" and any(value.kind == "list" for _, value in items):  # columns
        lists = [(name, value) for name, value in items if value.kind == "list"]
        return list(lists[_pick(source, [name for name, _ in lists], column)][1].children)
    if tree.kind == "list" and items and items[0].kind == "mapping":  # a table
        names = [name for name, _ in items[0].children]
        keys = {_key(name) for name in names}
        trials = column is None and {"value", "state"} <= keys
        at = next(i for i, n in enumerate(names) if _key(n) == "value") if trials else _pick(source, names, column)
        wanted = _key(names[at])
        cells = []
        for item in items:
            if item.kind != "mapping":
                source.refuse("expected a list of mappings", item)
            row = {_key(name): value for name, value in item.children}
            done = not trials or row["state"].text.rpartition(".")[2].upper() == "COMPLETE"
            cells.append(row[wanted] if done and wanted in row else Node("scalar", item.line))
        return cells
    if tree.kind == "list" and items and items[0].kind == "list":
        source.refuse("the first line must name the columns", items[0])
    if tree.kind == "scalar" or not items:
        source.refuse("expected a list of numbers", tree)
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
    hits = hits or [i for i, name in enumerate(names) if _key(name) == _key(Node("scalar", 0, column))]
    if len(hits) != 1:
        problem = "no column" if not hits else "several columns"
        raise InvalidInput("column", column, f"{source.name} has {problem} of that name: it has {have}")
    return hits[0]


# -- Histories


def read_history(path: str) -> list[tuple[float, float, int]]:
    """DP-SGD as Opacus keeps it, a state dict with ``history`` or the bare list of ``[noise, rate, steps]``.

    Each entry becomes sampling rate, noise multiplier, number of steps: the order in which :class:`hpcalc.DPSGD` takes
    them.
    """
    source = Source("history", path)
    tree = read_tree(source)
    if tree.kind == "mapping":
        inner = next((value for key, value in tree.children if _key(key) == "history"), None)
        if inner is None:
            source.refuse("has no key history: give an Opacus state dict, or [[noise, rate, steps], ...]", tree)
        tree = inner
    if tree.kind != "list" or not tree.children:
        source.refuse("the history is empty: expected [[noise, rate, steps], ...]", tree)
    history = []
    for item in tree.children:
        if item.kind != "list" or len(item.children) != 3:
            source.refuse("an entry must be [noise, rate, steps]", item)
        noise, rate, steps = item.children
        sigma, share = source.number(noise, "the noise"), source.number(rate, "the sampling rate")
        if sigma < 0.0:
            source.refuse(f"the noise {sigma:g}: give a number >= 0", noise)
        if not 0.0 < share <= 1.0:
            source.refuse(f"the sampling rate {share:g} is not between 0 and 1: an entry is [noise, rate, steps]", rate)
        history.append((share, sigma, whole(source, steps, "the number of steps", 0)))
    return history
