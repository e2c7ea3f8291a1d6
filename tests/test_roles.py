"""What five people come for, from the command line to the number they go home with."""

from __future__ import annotations

import csv
import json
import math
import pickle
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

import hpcalc
from hpcalc.cli import main

TRAINING = ("--examples", "60000", "--batch-size", "256", "--epochs", "60", "--delta", "1e-5")


@pytest.fixture
def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Any:
    """Run hpcalc in an empty folder; its exit code, standard output and standard error."""
    monkeypatch.chdir(tmp_path)

    def run(*argv: str) -> tuple[int, str, str]:
        code = main(list(argv))
        return code, *capfd.readouterr()

    return run


@pytest.mark.slow
def test_an_engineer_prices_thirty_trainings_and_finds_the_noise(ask: Any) -> None:
    search = ("--dist", "tnb", "--eta", "0", "--mean", "30", *TRAINING, "--format", "json")
    answer = json.loads(ask("bound", *search, "--noise-multiplier", "1.1")[1])
    assert answer["epsilon"] == pytest.approx(3.74, abs=1e-2)
    assert answer["lower_bound"]["epsilon"] <= answer["epsilon"] <= 1.002 * answer["lower_bound"]["epsilon"]
    assert answer["single_run"]["epsilon"] == pytest.approx(2.3818, abs=2e-4)
    assert answer["composition"] == {"runs": 30, "epsilon": pytest.approx(17.732, abs=2e-3)}

    plan = json.loads(ask("plan", *search, "--solve-for", "dpsgd-noise", "--target-epsilon", "3")[1])
    assert 1.1 < plan["value"] < 1.4
    said = json.loads(ask("bound", *search, "--noise-multiplier", str(plan["value"]))[1])
    assert 2.99 < said["epsilon"] <= 3.0
    assert said["epsilon"] == pytest.approx(plan["epsilon"], rel=1e-6)


def test_a_reviewer_checks_a_claim_of_fifty_runs(ask: Any) -> None:
    """Optimal composition of fifty (2, 1e-5) runs, by its own formula (Kairouz, Oh and Viswanath 2015)."""
    claim = ["bound", "--dist", "composition", "--k", "50", "--approx-dp", "2", "1e-5", "--delta", "1e-3"]
    code, out, err = ask(*claim)
    assert code == 0
    assert err.count("warning") == 1
    assert "Runs may be chosen in any way; each of the 50 is paid for." in out
    shown = float(out.split("ε = ")[1].split()[0])

    keep = math.exp(50 * math.log1p(-1e-5))
    more = math.exp(2.0) / (1.0 + math.exp(2.0))

    def delta(epsilon: float) -> float:
        terms = (
            math.comb(50, i) * more ** (50 - i) * (1 - more) ** i * max(-math.expm1(epsilon - 2.0 * (50 - 2 * i)), 0.0)
            for i in range(51)
        )
        return 1.0 - keep + keep * sum(terms)

    assert delta(shown) <= 1e-3 < delta(shown - 2e-3)

    code, out, _ = ask(*claim, "--max-epsilon", "2", "--format", "markdown")
    assert code == 1
    assert "- [ ] " in out


@pytest.mark.slow
def test_a_gate_over_three_cases_one_without_a_limit(ask: Any) -> None:
    def gate(fine: str, final: int) -> tuple[int, str, str]:
        Path("privacy.yaml").write_text(
            "- {name: coarse, dist: poisson, mu: 10, zcdp: 0.01, max-epsilon: 2}\n"
            f"- {{name: fine, dist: tnb, eta: 0, mean: 10, gaussian: 2.236{fine}}}\n"
            f"- {{name: final, dist: fixed, k: 1, zcdp: 0.1, max-epsilon: {final}}}\n"
        )
        return ask("bound", "--require-max-epsilon", "--spec", "privacy.yaml", "--format", "json")

    code, out, err = gate("", 1)
    assert (code, out) == (2, "")
    assert "fine" in err
    assert "max-epsilon" in err

    code, out, err = gate(", max-epsilon: 3", 1)
    assert code == 1
    cases = {case["name"]: case for case in json.loads(out)["cases"]}
    assert [name for name, case in cases.items() if case["epsilon"] > case["max_epsilon"]] == ["final"]
    assert cases["final"]["epsilon"] == pytest.approx(2.14194, abs=1e-4)
    assert cases["fine"]["epsilon"] == pytest.approx(2.7383, abs=1e-3)
    assert "final" in err
    assert "hpcalc plan" in err
    assert not any(name in err for name in ("coarse", "fine"))

    assert gate(", max-epsilon: 3", 3)[0] == 0


@pytest.mark.slow
def test_a_researcher_exports_the_curve(ask: Any) -> None:
    search = ("bound", "--dist", "poisson", "--mu", "10", "--zcdp", "0.1")
    assert ask(*search, "--rdp-out", "search.csv", "-o", "search.json") == (0, "", "")
    answer = json.loads(Path("search.json").read_text())
    with Path("search.csv").open() as file:
        curve = {float(row["order"]): float(row["epsilon"]) for row in csv.DictReader(file)}
    assert len(curve) > 10
    assert all(0.1 * order <= epsilon for order, epsilon in curve.items())  # more than one run
    assert sorted(curve.values()) == [curve[order] for order in sorted(curve)]
    code, out, _ = ask("convert", "--rdp-file", "search.csv", "--format", "json")
    assert code == 0
    assert answer["lower_bound"]["epsilon"] < json.loads(out)["to"]["epsilon"] < 1.001 * answer["epsilon"]


@pytest.mark.slow
def test_a_researcher_draws_the_search_and_the_laws(ask: Any) -> None:
    pytest.importorskip("matplotlib")
    base = ("--pure", "0.5")
    assert ask("bound", "--dist", "poisson", "--mu", "10", *base, "--plot", "search.svg")[::2] == (0, "")
    laws = ("--law", "poisson", "--law", "tnb:eta=0", "--mean", "10", "--success-rate", "0.01")
    assert ask("compare", *base, *laws, "--plot", "laws.svg")[::2] == (0, "")
    for name in ("search.svg", "laws.svg"):
        assert ET.parse(name).getroot().tag.endswith("svg")


@pytest.mark.slow
def test_a_notebook_session() -> None:
    run = hpcalc.compose(hpcalc.Gaussian(2.236), hpcalc.RDPCurve([2.0, 8.0, math.inf], [0.0, 0.0, 0.0]))
    law = hpcalc.TruncatedNegativeBinomial(eta=0.0, gamma=0.0269183)
    answer = hpcalc.bound(run, law, delta=1e-6)
    assert 2.73 < answer.epsilon < 2.75
    assert len(repr(answer).splitlines()) == 2
    assert "2.73" in repr(answer)
    assert "<table>" in answer._repr_html_()
    assert "| whole search |" in answer._repr_markdown_()
    assert pickle.loads(pickle.dumps(answer)) == answer
    assert answer.document()["epsilon"] == answer.epsilon
    assert answer.plot()._repr_svg_().lstrip().startswith("<?xml")

    plan = hpcalc.plan(hpcalc.ZCDP(0.1), target_epsilon=4.0, laws=["poisson"])
    assert plan.epsilon <= 4.0
    assert hpcalc.convert(hpcalc.ZCDP(0.1), delta=1e-6).epsilon == pytest.approx(2.14194, abs=1e-4)
    rows = hpcalc.compare(hpcalc.ZCDP(0.1), mean=10.0, laws=["poisson", "tnb:eta=0"])
    assert rows.epsilon == min(row["epsilon"] for row in rows.rows)

    best = hpcalc.best_of_k(lambda: hpcalc.draw(hpcalc.Poisson(3.0)), law)
    assert type(best) is int
    with pytest.raises(TypeError, match="law"):
        hpcalc.bound(run, 10, delta=1e-6)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="law"):
        hpcalc.utility(10)  # type: ignore[arg-type]
    for wrong in (0.1, "zcdp", law):
        for ask in (hpcalc.convert, hpcalc.compose, hpcalc.bound, hpcalc.compare, hpcalc.plan):
            more = {hpcalc.bound: {"runs": law}, hpcalc.plan: {"target_epsilon": 4.0}}
            with pytest.raises(TypeError, match="guarantee"):
                ask(wrong, **more.get(ask, {}))
    shown = {name for name in dir(hpcalc) if not name.startswith("__")}
    assert shown | {"__date__", "__version__"} == set(hpcalc.__all__)
