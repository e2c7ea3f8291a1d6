"""Pictures: what is in them, that they fit, and that the same answer gives the same bytes."""

from __future__ import annotations

import itertools
import re
import sys
import xml.etree.ElementTree as ET
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import hpcalc as hp
from hpcalc.output.panels import ONE_RUN, Axis, Panel, Series, panels_of
from hpcalc.output.plots import make_figure, picture
from hpcalc.output.textchart import text_chart, text_charts

TNB = hp.TruncatedNegativeBinomial
_ASKED: dict[str, Callable[[], Any]] = {
    "bound": lambda: hp.bound(hp.Gaussian(2.0), hp.Poisson(10.0), max_epsilon=5.0),
    "compare": lambda: hp.compare(hp.ZCDP(0.1), ["poisson", "tnb:eta=0"], success_rate=0.01, lower=False, curves=True),
    "sweep": lambda: hp.compare(hp.ZCDP(0.1), ["poisson", "tnb:eta=0", "fixed"], sweep="mean=1:30:4", lower=False),
    "plan": lambda: hp.plan(hp.ZCDP(0.1), target_epsilon=3.0, method="paper"),
    "utility": lambda: hp.utility(TNB.with_mean(10.0, eta=0.0), success_rate=0.01, scores=[0.1 * i for i in range(20)]),
}


@cache
def answered(kind: str) -> Any:
    return _ASKED[kind]()


@cache
def pictured(kind: str) -> list[Panel]:
    return panels_of(answered(kind))


drawn = pytest.mark.skipif(find_spec("matplotlib") is None, reason="matplotlib is not installed")
_TITLES = {
    "bound": ["Rényi curve", "Privacy profile"],
    "compare": ["Cost", "Quantile of the best run", "Success (one run: 0.01)"],
    "sweep": ["Cost", "Quantile of the best run"],
    "plan": ["Quantile of the best run"],
    "utility": ["Run time", "Chance of a good run", "Scores"],
}


def of(panel: Panel, kind: str) -> Series:
    return next(series for series in panel.series if series.kind == kind)


@pytest.mark.slow
@pytest.mark.parametrize("kind", _TITLES)
def test_every_answer_has_its_pictures(kind: str) -> None:
    panels = pictured(kind)
    assert [panel.title for panel in panels] == _TITLES[kind]
    for panel in panels:
        assert panel.x.label
        assert panel.y.label
        assert panel.caption
        assert all(len(series.x) == len(series.y) > 0 for series in panel.series if series.kind != "limit")
        # one style means one thing
        kinds = ("line", "steps", "points")
        styles = [series.style for series in panel.series if series.name and series.kind in kinds]
        assert len(set(styles)) == len(styles)


@pytest.mark.slow
def test_the_lower_bound_stays_below_the_profile() -> None:
    panel = pictured("bound")[1]
    whole, area = panel.series[0], of(panel, "area")
    for x, y in zip(area.x, area.y, strict=True):
        at = [d for e, d in zip(whole.x, whole.y, strict=True) if e <= x]
        assert len(at) == len(whole.y) or y <= at[-1] + 1e-9  # the profile left of it is higher


@pytest.mark.slow
def test_curves_of_a_comparison_pass_through_its_rows() -> None:
    cost = pictured("compare")[0]
    for line, mark in zip(cost.series[0::2], cost.series[1::2], strict=True):
        assert (line.kind, mark.kind) == ("line", "points")
        near = min(range(len(line.x)), key=lambda i: abs(line.x[i] - mark.x[0]))
        assert line.y[near] == pytest.approx(mark.y[0], rel=0.1)


@pytest.mark.slow
def test_a_law_has_one_style_in_every_picture() -> None:
    styles: dict[str, set[int]] = {}
    for kind in ("compare", "sweep", "plan"):
        for series in itertools.chain.from_iterable(panel.series for panel in pictured(kind)):
            styles.setdefault(series.name, set()).add(series.style)
    assert all(len(found) == 1 for name, found in styles.items() if name)
    poisson, tnb = styles["Poisson"].pop(), styles["negative binomial, η 0"].pop()
    assert ONE_RUN not in (poisson, tnb)
    assert {panel.series[0].style for panel in pictured("bound")} == {poisson}
    assert {panel.series[0].style for panel in pictured("utility")} == {tnb}


@pytest.mark.slow
def test_the_answer_lies_on_its_curve_and_the_limit_is_drawn() -> None:
    renyi, profile = pictured("bound")
    for panel in (renyi, profile):
        ring, line = of(panel, "ring"), panel.series[0]
        assert (ring.x[0], ring.y[0]) in set(zip(line.x, line.y, strict=True))
    assert (of(profile, "limit").name, of(profile, "limit").x) == ("limit ε = 5", (5.0,))
    assert (
        profile.caption
        == "Gaussian mechanism, noise multiplier 2; Poisson, μ 10, mean 10, P[K = 0] 4.53999e-5; δ = 1e-6"
    )
    assert "limit ε = 5" in text_chart(profile, 60)


@pytest.mark.slow
def test_the_recommended_plan_is_marked_at_its_runs_or_its_noise() -> None:
    noise = hp.plan(None, "poisson", solve_for="gaussian", mean=3.0, target_epsilon=2.0)
    for answer, label in ((answered("plan"), "runs, 95 % quantile"), (noise, "value of gaussian")):
        panel = panels_of(answer)[0]
        ring, first = panel.series[:2]
        assert (ring.name, ring.kind, ring.x, ring.y) == (f"recommended: {first.name}", "ring", first.x, first.y)
        assert re.search(r"[│┤].*O", text_chart(panel, 60))
        assert panel.x.label == label
    assert ring.x == (noise.best.value,)


@pytest.mark.slow
def test_the_renyi_panel_of_dp_sgd_ends_where_nothing_is_decided() -> None:
    answer = hp.bound(hp.DPSGD(0.0042667, 1.1, 1000), hp.Poisson(10.0), delta=1e-5, method="paper", lower=False)
    assert max(panels_of(answer)[0].series[0].y) <= 6.0 * answer.epsilon


def test_the_number_of_runs_is_drawn_as_steps() -> None:
    assert of(pictured("utility")[0], "steps").x[:3] == (1.0, 2.0, 3.0)


@pytest.mark.slow
def test_one_dear_law_does_not_squash_the_others() -> None:
    answer = hp.compare(hp.ZCDP(1.0), ["poisson", "tnb:eta=0", "tnb:eta=1", "composition"], mean=100.0, lower=False)
    assert panels_of(answer)[0].y.log


@pytest.mark.slow
def test_drawing_evaluates_no_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = [answered(kind) for kind in ("compare", "sweep", "plan", "utility")]

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a bound was evaluated")

    for name in ("bounds_for", "lower_bound"):
        monkeypatch.setattr(f"hpcalc.questions.search_cost.{name}", refuse)
    assert all(map(panels_of, asked))


@pytest.mark.slow
@pytest.mark.parametrize(
    "ask",
    [
        lambda: hp.bound(hp.PureDP(1.0), hp.Poisson(3.0)),
        lambda: hp.bound(hp.PureDP(1.0), hp.Poisson(3.0), delta=0.0),
        lambda: hp.bound(hp.ApproxDP(1.0, 1e-9), hp.Poisson(3.0)),
        lambda: hp.bound(hp.PureDP(1.0), hp.Threshold(0.1)),
        lambda: hp.bound(hp.ZCDP(0.1), hp.Poisson(3.0), lower=False),
        lambda: hp.utility(hp.Threshold(0.1)),
        lambda: hp.utility(TNB(0.0, 1e-100)),
        lambda: hp.compare(hp.ZCDP(0.1), [hp.Poisson(3.0)], lower=False, curves=True),
    ],
)
def test_unusual_answers_are_drawn(ask: Callable[[], object]) -> None:
    panels = panels_of(ask())
    assert panels
    for width, panel in itertools.product((40, 100), panels):
        assert max(map(len, text_chart(panel, width).splitlines())) <= width


def test_what_has_no_picture_draws_nothing(tmp_path: Path) -> None:
    assert (picture(object(), str(tmp_path / "none.svg")), picture(object(), "-")) == (None, "")
    assert not list(tmp_path.iterdir())


# text


@pytest.mark.slow
@pytest.mark.parametrize("kind", _TITLES)
def test_text_charts_fit_and_name_everything(kind: str) -> None:
    for panel, width in itertools.product(pictured(kind), (40, 60, 80, 100)):
        text = text_chart(panel, width)
        assert max(map(len, text.splitlines())) <= width
        assert all(name in text for name in (panel.title, panel.x.label, *(series.name for series in panel.series)))


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_text_charts_on_poor_streams(encoding: str) -> None:
    text = text_charts(pictured("bound"), 70, encoding)
    text.encode(encoding)
    assert "eps" in text
    assert "|" in text
    assert "│" not in text


def test_a_text_chart_is_drawn_to_scale() -> None:
    line = Series("line", (0.0, 10.0), (0.0, 10.0))
    text = text_chart(Panel("t", Axis("x"), Axis("y"), (line,)), 40)
    rows = [row.split("│")[-1].split("┤")[-1] for row in text.splitlines() if "│" in row or "┤" in row]
    marks = [(row.index("o"), row.rindex("o")) for row in rows]
    assert all(first >= after for (first, _), (after, _) in itertools.pairwise(marks))
    margin = next(row.index("└") for row in text.splitlines() if "└" in row) + 1
    assert marks[0][1] == 40 - margin - 1
    assert marks[-1][0] == 0


def test_ticks_are_round_and_in_order() -> None:
    points = Series("points", (1.0, 950.0), (0.013, 0.87), kind="points")
    text = text_chart(Panel("t", Axis("x", log=True), Axis("y"), (points,)), 60)
    axis = text.splitlines()[-3].split()
    assert axis == ["1", "10", "100"] or axis[:3] == ["1", "2", "5"]
    assert "0.2" in text


# files


@pytest.mark.slow
@drawn
@pytest.mark.parametrize("kind", ["svg", "png", "pdf"])
def test_the_same_answer_gives_the_same_bytes(tmp_path: Path, kind: str) -> None:
    first, second = tmp_path / f"a.{kind}", tmp_path / f"b.{kind.upper()}"
    for path in (first, second):
        assert picture(answered("utility"), str(path)) is None
    data = first.read_bytes()
    assert data == second.read_bytes()
    assert data.startswith({"svg": b"<?xml", "png": b"\x89PNG", "pdf": b"%PDF"}[kind])
    assert b"dc:date" not in data
    assert len(list(tmp_path.iterdir())) == 2


@drawn
@pytest.mark.slow
def test_the_picture_of_the_readme_is_what_its_command_draws(tmp_path: Path) -> None:
    """Its curves, that is; where matplotlib puts a letter differs between its releases."""

    def curves(path: Path) -> int:
        return len([item for item in ET.fromstring(path.read_text()).iter() if "line2d" in item.get("id", "")])

    shown = Path(__file__).parents[1] / "pictures" / "laws.svg"
    answer = hp.compare(hp.ZCDP(0.1), at_epsilon=4.0, success_rate=0.01, lower=False, curves=True)
    picture(answer, str(tmp_path / "laws.svg"))
    assert curves(shown) == curves(tmp_path / "laws.svg") > 30
    readme = Path(__file__).parents[2] / "README.md"
    assert "tests/pictures/laws.svg" in readme.read_text(encoding="utf-8")


@drawn
@pytest.mark.slow
@pytest.mark.parametrize("size", [1.0, 0.8])
@pytest.mark.parametrize("kind", _TITLES)
def test_labels_stay_inside_the_figure_and_apart(kind: str, size: float) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    with make_figure(pictured(kind)) as figure:
        figure.set_size_inches(*(size * figure.get_size_inches()))
        FigureCanvasAgg(figure).draw()
        texts = [text for axes in figure.axes for text in (axes.title, axes.xaxis.label, axes.yaxis.label)]
        boxes = [text.get_window_extent() for text in (*texts, figure._suptitle, figure.legends[0])]
        for box in boxes if size == 1.0 else boxes[:-2]:  # caption and legend were made for the whole width
            assert min(box.x0, box.y0) >= -1.0
            assert box.x1 <= figure.bbox.x1 + 1.0
            assert box.y1 <= figure.bbox.y1 + 1.0
        assert not any(one.overlaps(other) for one, other in itertools.combinations(boxes, 2))


@pytest.mark.parametrize("name", ["a.gif", "a", "svg", ""])
def test_other_endings_are_refused(name: str) -> None:
    with pytest.raises(hp.InvalidInput, match=r"\.svg, \.png or \.pdf"):
        picture(answered("utility"), name)


def test_without_matplotlib_one_line_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(hp.MissingExtra, match=r"^[^\n]*hpcalc\[plot\][^\n]*$"):
        picture(answered("utility"), str(tmp_path / "a.svg"))
    assert picture(answered("utility"), "-")
