"""The digits that hpcalc prints, side by side for several versions of Python, NumPy and SciPy.

    python tests/versions.py [--keep DIR] [PYTHON=REQUIREMENT,REQUIREMENT...]...
    python tests/versions.py --print

Makes one virtual environment for each argument (default: the oldest and the newest supported, and two in between),
asks each the same questions, every command, base, law and method, and compares what it prints with the first one's.
Python interpreters are looked for on the path and where pyenv keeps them. ``--print`` only prints this interpreter's
own answers.

Exponentials differ in their last bit between builds of NumPy. What is printed must not: searches over discrete choices
(orders of a mechanism's outcomes, cells to refine) settle ties by rule. Only how many cells were
refined may differ. The exit code is 1 if any number differs by more than one unit of its tenth digit.
"""

from __future__ import annotations

import argparse
import difflib
import itertools
import json
import math
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
MATRIX = (
    "3.10=numpy==1.24.*,scipy==1.10.*,click==8.2.*,rich==13.0.*,pyyaml==6.0.1",
    "3.11=numpy==1.26.*,scipy==1.12.*,click==8.2.*,rich==13.*",
    "3.12=numpy==2.0.*,scipy==1.14.*",
    "3.13=numpy,scipy",
)

BASES = {
    "zcdp": "--zcdp 0.1",
    "zcdp-large": "--zcdp 30",
    "gaussian": "--gaussian 2",
    "gaussian-small": "--gaussian 0.3",
    "pure": "--pure 1",
    "laplace": "--laplace 2",
    "approx": "--approx-dp 0.5 1e-8",
    "rdp": "--rdp 1.5:0.1,2:0.2,8:1.0,32:4.5",
    "both": "--zcdp 0.05 --gaussian 5 --pure 0.2",
    "dpsgd": "--dpsgd 0.01 1.1 200",
}
LAWS = {
    "poisson": "--dist poisson --mu 10",
    "tnb": "--dist tnb --eta -0.5 --mean 10",
    "tnb-steep": "--dist tnb --eta 2.5 --mean 40",
    "geometric": "--dist geometric --gamma 0.1",
    "logarithmic": "--dist logarithmic --mean 5",
    "binomial": "--dist binomial --n 50 --p 0.1",
    "fixed": "--dist fixed --k 5",
    "pmf": "--dist pmf --pmf 1:0.5,3:0.3,20:0.2",
    "truncated": "--dist poisson --mu 10 --max-runs 30",
    "some": "--dist poisson --mu 2 --at-least-one",
    "threshold": "--dist threshold --accept 0.2",
}
METHODS = ("paper", "refined", "lemma-7", "refined-rdp", "refined-region")


def questions() -> list[str]:
    """Command lines, about 200."""
    lines = [f"bound {base} {law}" for base, law in itertools.product(BASES.values(), LAWS.values())]
    for name, method in itertools.product(("zcdp", "gaussian", "pure", "rdp"), METHODS):
        lines.append(f"bound {BASES[name]} {LAWS['tnb']} --method {method} --explain")
    for rule, name in itertools.product(("cks", "mironov", "exact"), ("zcdp", "gaussian", "laplace")):
        lines.append(f"bound {BASES[name]} {LAWS['poisson']} --conversion {rule} --delta 1e-9 --orders 2,4,8,64")
    for base in BASES.values():
        lines += [f"convert {base} --delta 1e-6", f"convert {base} --epsilon 1", f"convert {base} --delta 0.2"]
    lines += [f"utility {law} --success-rate 0.01" for law in LAWS.values()]
    lines += [f"compare {BASES[name]} --mean 10 --success-rate 0.01" for name in ("zcdp", "gaussian", "pure")]
    lines.append(f"compare {BASES['zcdp']} --at-epsilon 4 --success-rate 0.01 --method paper")
    lines += [f"plan {BASES[name]} --target-epsilon 6 --success-rate 0.01" for name in ("zcdp", "gaussian", "pure")]
    return lines


def answers() -> list[str]:
    """What this interpreter prints to each question, the version line aside."""
    from goldens import run

    out = []
    for line in questions():
        code, text, error = run(f"{line} --format json")
        if code == 0:
            document = json.loads(text)
            text = "\n".join(f"{path} {value!r}" for path, value in _leaves(document))
        out.append(f"$ hpcalc {line}\n[exit {code}]\n{text}{error}")
    return out


def _leaves(value: object, path: str = "") -> list[tuple[str, object]]:
    if isinstance(value, dict):
        return [leaf for key, item in value.items() for leaf in _leaves(item, f"{path}.{key}".lstrip("."))]
    if isinstance(value, list):
        return [leaf for index, item in enumerate(value) for leaf in _leaves(item, f"{path}[{index}]")]
    return [(path, value)]


def _environment(folder: Path, spec: str) -> Path | None:
    """The interpreter of a fresh environment with these versions; None where there is no such Python."""
    version, _, pins = spec.partition("=")
    python = folder / f"v{version}" / "bin" / "python"
    if not python.exists():
        # pyenv's own programs on the path answer only for the versions it has chosen
        found = [*map(str, sorted(Path.home().glob(f".pyenv/versions/{version}*/bin/python"))), f"python{version}"]
        interpreter = shutil.which(found[0])
        if interpreter is None:
            return None
        subprocess.run([interpreter, "-m", "venv", str(folder / f"v{version}")], check=True)
        install = [str(python), "-m", "pip", "install", "--quiet", "--editable", str(ROOT)]
        subprocess.run([*install, *(pin for pin in pins.split(",") if pin)], check=True)
    return python


def compare(specs: list[str], folder: Path) -> int:
    """Ask every environment, print a table and what differs, return how many differ too much from the first."""
    report: dict[str, list[str]] = {}
    for spec in specs:
        python = _environment(folder, spec)
        if python is None:
            print(f"{spec}: no such Python here")
            continue
        done = subprocess.run([str(python), __file__, "--print"], capture_output=True, text=True, check=True)
        report[spec] = json.loads(done.stdout)
    if not report:
        return 1
    worst, first = 0, next(iter(report.values()))
    print("| environment | answers | same bytes | numbers differ by |\n|---|---|---|---|")
    for spec, given in report.items():
        pairs = [(one, two) for one, two in zip(first, given, strict=True) if one != two]
        gap = max((_gap(one, two) for one, two in pairs), default=0.0)
        worst += gap > LARGEST
        print(f"| {spec} | {len(given)} | {len(given) - len(pairs)} | {gap:.1g} |")
        for one, two in pairs:
            lines = difflib.unified_diff(
                one.splitlines(), two.splitlines(), one.splitlines()[0], spec, lineterm="", n=0
            )
            print("\n".join(lines), file=sys.stderr)
    return worst


#: Largest relative difference that is let pass.
LARGEST = 1e-9
#: What describes a search rather than its result.
SEARCH = ("nodes", "discretisation.relative")


def _gap(one: str, two: str) -> float:
    """Largest relative difference of two answers' numbers; inf for words."""
    gap = 0.0
    for a, b in itertools.zip_longest(one.splitlines(), two.splitlines(), fillvalue=""):
        (path, _, x), (other, _, y) = a.partition(" "), b.partition(" ")
        if a == b or path.endswith(SEARCH):
            continue
        try:
            gap = max(gap, abs(float(x) - float(y)) / max(abs(float(x)), abs(float(y))) if path == other else math.inf)
        except ValueError:
            return math.inf
    return gap


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("specs", nargs="*", metavar="PYTHON=REQUIREMENTS", default=list(MATRIX))
    parser.add_argument("--print", action="store_true", help="print this interpreter's answers")
    parser.add_argument("--keep", type=Path, help="make, or use again, the environments in this folder")
    options = parser.parse_args()
    if options.print:
        print(json.dumps(answers()))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        return 1 if compare(options.specs, Path(options.keep or folder).resolve()) else 0


if __name__ == "__main__":
    sys.exit(main())
