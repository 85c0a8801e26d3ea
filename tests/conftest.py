"""Fixtures of all tests, and of those of the command line."""

import signal

import numpy as np
import pytest

from hybridmix import _kernels, _scratch

# Shells start jobs in the background with interrupts ignored, which commands respect, and
# which the commands that the tests start would inherit.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def spoiled_memory(monkeypatch):
    """Memory that has been given back holds NaN: whatever still reads it will show."""
    give_back = _scratch._give_back

    def spoil_and_give_back(first):
        # These bytes are NaN in single and in double precision.
        _scratch._thread.memory[first : _scratch._thread.n_used] = 0xFF
        give_back(first)

    monkeypatch.setattr(_scratch, "_give_back", spoil_and_give_back)


@pytest.fixture(autouse=True)
def same_draws():
    """Estimators without a seed draw from NumPy's own state: the same in every run."""
    np.random.seed(0)  # noqa: NPY002


@pytest.fixture(scope="module", params=["0", *_kernels.variants()[-1:]])
def kernels(request):
    """Run tests twice: in NumPy, and with the kernels of this machine, if it has any."""
    with _kernels.using(request.param):
        yield request.param


@pytest.fixture
def shell(capsys, tmp_path, monkeypatch):
    """Run command lines in an empty folder."""
    from cli_tools import Shell

    monkeypatch.chdir(tmp_path)
    return Shell(capsys)


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """A model file, fitted to a CSV file by the command line."""
    from cli_tools import QUICK, make_table, write

    from hybridmix.cli import main

    folder = tmp_path_factory.mktemp("fitted")
    table = write(make_table(), folder / "train.csv")
    model = folder / "model.hmx"
    command = ["fit", table, "--target", "kind", "-o", str(model), "-q", *QUICK]
    assert main(command) == 0
    return model
