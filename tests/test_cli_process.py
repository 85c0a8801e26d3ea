"""The command line as a process: streams, interrupts, exit codes."""

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from cli_tools import QUICK, make_table, process, write

import hybridmix
from hybridmix.exceptions import UnsupportedError

needs_shell = pytest.mark.skipif(
    not os.path.exists("/dev/full"), reason="needs a shell and devices of Linux"
)

# Processes ----------------------------------------------------------------------------


def test_errors_of_a_process(fitted, tmp_path):
    with process("predict", fitted, tmp_path / "none.csv") as run:
        out, err = run.communicate()
    assert (run.returncode, out) == (2, "")
    assert err.startswith("hybridmix: error:")
    assert err.count("\n") == 1


def test_closed_pipes_are_silent(fitted, tmp_path):
    table = write(make_table(3000), tmp_path / "t.csv")
    with process("predict", fitted, table, "--chunk-rows", 100) as run:
        assert run.stdout.readline().startswith("id,size,")
        run.stdout.close()
        assert run.stderr.read() == ""
    assert run.returncode == 141


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_pipes_that_nobody_reads(fitted, options):
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "hybridmix", "inspect", fitted, *options]
    with os.fdopen(writing) as stdout:
        run = subprocess.run(
            command, stdout=stdout, stderr=subprocess.PIPE, text=True, check=False
        )
    assert (run.returncode, run.stderr) == (141, "")


def in_shell(redirection, *arguments):
    """Run a command with redirections of a shell."""
    words = [sys.executable, "-m", "hybridmix", *map(str, arguments)]
    return subprocess.run(
        f"{shlex.join(words)} {redirection}",
        shell=True,
        capture_output=True,
        text=True,
        check=False,
    )


@needs_shell
@pytest.mark.parametrize(
    ("command", "redirection", "reason"),
    [
        ("predict", ">&-", "Bad file descriptor"),
        ("evaluate", ">&-", "Bad file descriptor"),
        ("predict", ">/dev/full", "No space left on device"),
    ],
)
def test_results_that_cannot_be_written(fitted, tmp_path, command, redirection, reason):
    # On training rows, evaluate would also warn.
    table = write(make_table(seed=1), tmp_path / "t.csv")
    run = in_shell(redirection, command, fitted, table)
    assert run.stderr == f"hybridmix: error: stdout: {reason}.\n"
    assert run.returncode == 1


@needs_shell
def test_closed_streams_that_are_not_needed(fitted, tmp_path):
    table = write(make_table(), tmp_path / "t.csv")
    output = tmp_path / "new.csv"
    run = in_shell(">&- <&-", "predict", fitted, table, "-o", output)
    assert (run.returncode, run.stderr) == (0, f"written to {output}\n")
    run = in_shell("2>&-", "predict", fitted, table)
    assert (run.returncode, run.stdout) == (0, output.read_text())
    run = in_shell("2>&-", "predict", fitted, tmp_path / "none.csv")
    assert (run.returncode, run.stdout) == (2, "")


def test_stdout_is_utf_8_everywhere(fitted, tmp_path):
    table = make_table().rename(columns={"id": "名"})
    path = write(table, tmp_path / "t.csv")
    environment = {**os.environ, "PYTHONIOENCODING": "latin-1"}
    with process("predict", fitted, path, env=environment, encoding="utf-8") as run:
        assert run.stdout.readline().startswith("名,size,")
        run.communicate()
    assert run.returncode == 0


@pytest.fixture
def interrupted(shell, monkeypatch):
    """Run commands that get SIGINT at a step of their fit."""

    def run(*arguments, step=3, task=None):
        @contextmanager
        def interrupting(console):
            def interrupt(seen):
                if task not in (None, seen.task):
                    return
                steps.append(seen)
                if len(steps) == step:
                    signal.raise_signal(signal.SIGINT)

            yield interrupt

        steps = []
        with monkeypatch.context() as patch:
            patch.setattr("hybridmix.cli.console.Console._bars", interrupting)
            assert shell(*arguments) == 130, shell.err
        assert shell.err.endswith("hybridmix: interrupted\n")
        return len(steps)

    return run


def test_ctrl_c_is_the_usual_end_of_the_explorer(shell, monkeypatch):
    write(make_table(), "t.csv")
    shell.run("fit", "t.csv", "-t", "kind", "-o", "m.hmx", *QUICK)
    monkeypatch.setattr(
        "hybridmix.explorer.session.Explorer.wait",
        lambda _: signal.raise_signal(signal.SIGINT),
    )
    shell.run("explore", "m.hmx", "t.csv", "--no-browser")
    assert "interrupted" not in shell.err


@pytest.mark.parametrize("options", [[], ["-q"], ["--json"]])
def test_an_interrupted_fit_is_saved_beside_the_model(shell, interrupted, options):
    write(make_table(), "t.csv")
    Path("m.v1.hmx").write_bytes(b"old")
    command = ["fit", "t.csv", "-t", "kind", "-o", "m.v1.hmx", "--components", "2"]
    interrupted(*command, *options, task="L-BFGS")
    assert Path("m.v1.hmx").read_bytes() == b"old"
    warning = "so far is in m.v1.interrupted.hmx; m.v1.hmx is not written."
    assert warning in shell.err
    hybridmix.load("m.v1.interrupted.hmx")
    if options == ["--json"]:
        told = json.loads(shell.out)
        assert (told["interrupted"], told["model"]) == (True, "m.v1.interrupted.hmx")
    told = json.loads(shell.run(*command, "--json"))
    assert (told["interrupted"], told["model"]) == (False, "m.v1.hmx")


def test_nothing_else_is_made_of_an_interrupted_fit(shell, interrupted, fitted):
    write(make_table(), "t.csv")
    # What a search has tried by then is kept, next to where the model would be.
    interrupted("fit", "t.csv", "-t", "kind", "-o", "new.hmx")
    os.remove("new.interrupted.hmx")
    interrupted("impute", "t.csv", "-o", "new.csv")
    interrupted("outliers", "t.csv", "-o", "new.csv")
    # The first interrupt ends all of it, not one fit of many.
    assert interrupted("report", fitted, "t.csv", "-o", "report.html") <= 4
    assert interrupted("demo", "--quick", "--folder", "demo", step=1) == 1
    assert os.listdir(".") == ["t.csv"]


def test_an_interrupted_process(tmp_path):
    """A real fit gets a real signal; when, depends on the machine."""
    table = write(make_table(4000), tmp_path / "t.csv")
    model = tmp_path / "m.hmx"
    model.write_bytes(b"old")
    with process("fit", table, "-t", "kind", "-o", model, "--components", "24") as run:
        for line in run.stderr:
            if "target" in line:
                time.sleep(0.5)
                run.send_signal(signal.SIGINT)
                break
        rest = run.stderr.read()
    assert run.returncode == 130, rest
    assert "Traceback" not in rest
    assert model.read_bytes() == b"old"


@pytest.mark.skipif(os.name == "nt", reason="groups of processes of Unix")
def test_an_interrupted_search_in_processes(tmp_path):
    """A terminal sends Ctrl-C to all processes, and each of them had a traceback."""
    table = write(make_table(2000), tmp_path / "t.csv")
    command = ["fit", table, "-t", "kind", "-o", tmp_path / "m.hmx"]
    with process(*command, "--tune", "--jobs", "2", start_new_session=True) as run:
        for line in run.stderr:
            if "target" in line:
                time.sleep(1.0)  # the processes are importing what they need
                os.killpg(run.pid, signal.SIGINT)
                break
        rest = run.stderr.read()
    assert run.returncode == 130, rest
    assert rest.strip() == "hybridmix: interrupted"


@pytest.mark.parametrize("module", ["hybridmix.cli.interrupts", "numpy", "typer"])
def test_interrupts_during_imports(fitted, module):
    command = [sys.executable, "-X", "importtime", "-m", "hybridmix", "inspect", fitted]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as run:
        for line in run.stderr:
            if line.rpartition("|")[2].strip() == module:
                run.send_signal(signal.SIGINT)
                break
        rest = run.stderr.read()
    assert run.returncode == 130, rest
    assert "Traceback" not in rest
    assert rest.endswith("hybridmix: interrupted\n")


def test_interrupts_that_are_ignored_stay_ignored(shell, fitted):
    write(make_table(), "t.csv")
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        shell.run("predict", fitted, "t.csv", "-o", "new.csv")
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
    shell.run("inspect", fitted)
    assert signal.getsignal(signal.SIGINT) is before


def test_interruption(shell, fitted, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(hybridmix.HybridMixtureClassifier, "predict_proba", interrupted)
    write(make_table(), "t.csv")
    assert shell("predict", fitted, "t.csv", "-o", "new.csv") == 130
    assert os.listdir(".") == ["t.csv"]
    monkeypatch.setattr("hybridmix.cli.app.run", interrupted)
    assert shell("predict", fitted) == 130
    assert shell.err == "hybridmix: interrupted\n"


def test_what_a_model_does_not_offer_is_said(shell, fitted, monkeypatch):
    def refuse(self, *_, **__):
        raise UnsupportedError(self, "samples", "Fit a density.")

    monkeypatch.setattr(hybridmix.HybridMixtureClassifier, "sample", refuse)
    line = shell.fail("sample", fitted)
    assert line.endswith("HybridMixtureClassifier does not offer samples. Fit a density.")


def test_unexpected_errors_and_debugging(shell, fitted, monkeypatch):
    def broken(self, frame):
        raise RuntimeError("oh\nno")

    monkeypatch.setattr(hybridmix.HybridMixtureClassifier, "predict_proba", broken)
    write(make_table(), "t.csv")
    line = shell.fail("predict", fitted, "t.csv", code=1)
    assert "Unexpected RuntimeError: oh no (rerun with --debug" in line
    assert shell("predict", fitted, "t.csv", "--debug") == 1
    assert "Traceback" in shell.err
    for value in ("1", "", "0"):
        monkeypatch.setenv("HYBRIDMIX_DEBUG", value)
        shell("predict", fitted, "t.csv")
        assert ("Traceback" in shell.err) == (value == "1")


def test_bars_on_a_terminal(shell, fitted, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    write(make_table(), "t.csv")
    shell.run("fit", "t.csv", "-t", "kind", "-o", "m.hmx")
    assert "L-BFGS" in shell.err
    shell.run("predict", fitted, "t.csv", "-o", "new.csv")
    assert "predicting" in shell.err
    command = ["fit", "t.csv", "-t", "kind", "-o", "m.hmx", "-q", *QUICK]
    shell.run(*command, "--drop", "id,day")
    assert shell.out == shell.err == ""


def test_what_is_missing_is_named(shell, monkeypatch):
    monkeypatch.setattr("hybridmix.cli.process._NEEDED", ("typer", "no_such_package"))
    line = shell.fail("fit", code=1)
    assert "needs no_such_package: pip install 'hybridmix[cli]'" in line


def test_help_and_version(shell):
    assert shell.run("--version") == f"hybridmix {hybridmix.__version__}\n"
    assert "outliers" in shell.run()
    for command in ("fit", "predict", "evaluate", "impute", "outliers", "sample"):
        assert "Examples:" in shell.run(command, "--help")
