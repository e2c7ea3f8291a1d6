"""Pipes, full disks, encodings, interrupts and files: the manners of a Unix tool, tested on the real process."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace

import pytest

from hpcalc.cli import answers, app, main
from hpcalc.errors import DataFileError
from hpcalc.files import write_file
from hpcalc.output.streams import wants_colour

COMMAND = [sys.executable, "-m", "hpcalc"]
DRAW = ["draw", "--dist", "poisson", "--mu", "10"]
needs_posix = pytest.mark.skipif(os.name != "posix", reason="POSIX streams")


def environment(**variables: str) -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("HPCALC_", "PYTHON", "COLUMNS"))}
    return {**kept, **variables}


def hpcalc(*args: str, env: Mapping[str, str] | None = None, **options: object) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(  # type: ignore[call-overload, no-any-return]
        [*COMMAND, *args],
        capture_output="stdout" not in options,
        env=dict(env or environment()),
        check=False,
        **options,
    )


@needs_posix
@pytest.mark.parametrize(
    ("words", "code", "lines"),
    [
        ("--help >/dev/full", 4, ["hpcalc: standard output: No space left on device"]),
        ("--version >/dev/full", 4, ["hpcalc: standard output: No space left on device"]),
        ("draw --dist poisson --mu 10 >/dev/full", 4, ["hpcalc: standard output: No space left on device"]),
        ("--version >&-", 4, None),
        ("bound --zcdp nan 2>&-", 2, []),
        ("bound --spec - <&-", 4, ["hpcalc: --spec standard input: is closed"]),
        ("draw --dist poisson --mu 10 -o /dev/stdout | cat >/dev/null", 0, []),
        ("bound --zcdp nan 2>/dev/full", 2, []),
    ],
)
def test_streams_that_are_full_or_closed(words: str, code: int, lines: list[str] | None) -> None:
    shell = f'exec "{sys.executable}" -m hpcalc {words}'
    done = subprocess.run(["sh", "-c", shell], stderr=subprocess.PIPE, env=environment(), check=False, text=True)
    assert done.returncode == code
    assert done.stderr.splitlines() == lines if lines is not None else len(done.stderr.splitlines()) == 1


@needs_posix
@pytest.mark.parametrize("args", [["--help"], [*DRAW, "--count", "30000"]])
def test_a_closed_pipe_is_quiet_and_never_1(args: list[str]) -> None:
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run([*COMMAND, *args], stdout=write, stderr=subprocess.PIPE, env=environment(), check=False)
    os.close(write)
    assert done.returncode in (0, 141)
    assert done.stderr == b""


@pytest.mark.slow
@needs_posix
def test_ctrl_c_is_130_without_a_traceback() -> None:
    with subprocess.Popen(
        [*COMMAND, *DRAW, "--count", "1e7"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(),
        # a test runner started in the background has SIGINT ignored, and children inherit that
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as process:  # fmt: skip
        time.sleep(1.0)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err == b""


@pytest.mark.parametrize("variables", [
    {"PYTHONIOENCODING": "ascii"},
    {"PYTHONIOENCODING": "cp1252"},
    {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    {"PYTHONIOENCODING": "utf-8", "TERM": "dumb"},
], ids=str)  # fmt: skip
def test_errors_are_legible_on_every_stream(variables: dict[str, str]) -> None:
    done = hpcalc("bound", "--zcdp", "-1", "--dist", "poisson", "--mu", "1", env=environment(**variables))
    text = done.stderr.decode("ascii" if "TERM" not in variables else "utf-8")
    assert (done.returncode, done.stdout, "\\u" in text) == (2, b"", False)
    assert text.startswith("hpcalc: --zcdp -1: give ")


@pytest.mark.parametrize(
    ("variables", "on_a_terminal", "elsewhere"),
    [
        ({"TERM": "xterm"}, True, False),
        ({"TERM": "dumb"}, False, False),
        ({}, False, False),
        ({"FORCE_COLOR": "1"}, True, True),
        ({"FORCE_COLOR": "0", "TERM": "xterm"}, False, False),
        ({"NO_COLOR": "1", "TERM": "xterm"}, False, False),
        ({"NO_COLOR": "1", "FORCE_COLOR": "1", "TERM": "xterm"}, False, False),
        ({"NO_COLOR": "", "TERM": "xterm"}, True, False),
    ],
)
def test_when_escape_codes_are_wanted(
    variables: dict[str, str], on_a_terminal: bool, elsewhere: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    for terminal, wanted in ((True, on_a_terminal), (False, elsewhere)):
        monkeypatch.setattr(sys, "stdout", SimpleNamespace(isatty=lambda: terminal))
        assert wants_colour() == wanted


def test_output_is_written_whole_and_keeps_its_mode(tmp_path: Path) -> None:
    target = tmp_path / "out.txt"
    write_file(str(target), "first\n")
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE(target.stat().st_mode) == 0o666 & ~umask
    target.chmod(0o640)
    link = tmp_path / "link"
    link.symlink_to(target)
    write_file(str(link), "second\n")
    assert link.is_symlink()
    assert target.read_text() == "second\n"
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "out.txt"]


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "out.txt"
    target.write_text("old")

    def broken(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", broken)
    with pytest.raises(DataFileError, match=r"out\.txt: cannot be written: No space left"):
        write_file(str(target), "new")
    assert target.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["out.txt"]


def test_unwritable_places_are_exit_code_4(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for place in (tmp_path, tmp_path / "absent" / "file", f"{tmp_path}/absent/"):
        assert main([*DRAW, "--output", str(place)]) == 4
        out, err = capsys.readouterr()
        assert out == ""
        assert len(err.splitlines()) == 1
        assert str(place) in err


@needs_posix
def test_output_may_be_a_stream(capfd: pytest.CaptureFixture[str]) -> None:
    write_file("/dev/null", "x")
    assert main([*DRAW, "--output", "-"]) == 0
    assert capfd.readouterr().out.strip().isdigit()


def test_nothing_is_written_when_the_input_is_wrong(tmp_path: Path) -> None:
    target = tmp_path / "out.json"
    target.write_text("old")
    assert main(["draw", "--dist", "poisson", "--mu", "-1", "--output", str(target)]) == 2
    assert target.read_text() == "old"


@pytest.mark.parametrize(
    ("raised", "code", "told"),
    [
        (KeyboardInterrupt(), 130, []),
        (BrokenPipeError(32, "Broken pipe"), 141, []),
        (MemoryError(), 70, ["hpcalc: out of memory: the question is too large for this machine"]),
        (OSError(5, "Input/output error", "some.csv"), 4, ["hpcalc: some.csv: Input/output error"]),
        (DataFileError("some.csv: unreadable"), 4, ["hpcalc: some.csv: unreadable"]),
        (ZeroDivisionError("by\nzero"), 70, ["hpcalc: internal error: ZeroDivisionError: by\\nzero",
                                             "Please report it; HPCALC_DEBUG=1 shows where."]),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else "",
)  # fmt: skip
def test_whatever_happens_has_its_exit_code(
    raised: BaseException, code: int, told: list[str],
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    def broken(**law: object) -> None:
        raise raised

    monkeypatch.setattr(answers, "make_law", broken)
    monkeypatch.setattr(app, "discard", lambda descriptor: None)
    monkeypatch.delenv("HPCALC_DEBUG", raising=False)
    assert main(DRAW) == code
    out, err = capsys.readouterr()
    assert (out, err.splitlines()) == ("", told)


def test_a_spec_may_come_from_stdin() -> None:
    done = hpcalc("utility", "--spec", "-", "--format", "json", input=b"dist: poisson\nmu: 1e1\n")
    assert done.returncode == 0
    assert b'"mean_runs": 10.0' in done.stdout
    wrong = hpcalc("utility", "--spec", "-", input=b"dist: poisson\nmu: ten\n")
    assert wrong.returncode == 2
    assert wrong.stderr.startswith(b"hpcalc: standard input:2: mu: ten: give a number")
