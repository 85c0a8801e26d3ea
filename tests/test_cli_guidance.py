"""The command line: how it helps where files and options are not as they should be."""

import numpy as np
import pytest
from cli_tools import QUICK, make_table, read, write


@pytest.fixture
def fitted(shell):
    """A classifier of the file ``table.csv``."""
    write(make_table(), "table.csv")
    shell.run("fit", "table.csv", "-t", "kind", "-o", "model.hmx", *QUICK)
    return "model.hmx"


# The model comes before the table -----------------------------------------------------


@pytest.mark.parametrize("command", ["impute", "outliers"])
def test_a_model_may_come_before_the_table(shell, fitted, command):
    shell.run(command, fitted, "table.csv", "-o", "new.csv")
    shell.run(command, "table.csv", "--model", fitted, "-o", "same.csv")
    assert read("new.csv").equals(read("same.csv"))


@pytest.mark.parametrize("command", ["predict", "evaluate", "report", "impute"])
def test_a_table_in_the_place_of_the_model_is_refused(shell, fitted, command):
    output = [] if command == "evaluate" else ["-o", "new.csv"]
    message = shell.fail(command, "table.csv", fitted, *output)
    assert f"hybridmix {command} {fitted} table.csv" in message


def test_files_that_are_too_many_or_too_few(shell, fitted):
    message = shell.fail("impute", fitted)
    assert message.endswith(f"hybridmix impute {fitted} TABLE")
    message = shell.fail("outliers", fitted, "table.csv", "table.csv")
    assert "hybridmix outliers MODEL TABLE" in message
    assert "MODEL TABLE" in shell.fail("impute", "a.hmx", "table.csv", "-m", fitted)


# Labels that are kept out -------------------------------------------------------------


def test_labels_are_kept_out(shell, fitted):
    quick = ["--components", "1", "-q", "--drop", "id,day"]
    shell.run("impute", "table.csv", "-o", "new.csv", "--target", "kind", *quick)
    assert shell.err == ""
    np.testing.assert_array_equal(
        read("new.csv")["kind"].isna(), make_table()["kind"].isna()
    )
    shell.run("impute", "table.csv", "-o", "all.csv", *quick)
    assert not read("all.csv")["kind"].isna().any()
    shell.run("outliers", fitted, "table.csv", "-t", "kind")
    message = shell.fail("impute", "table.csv", "--target", "kinds", *quick)
    assert "--target: table.csv has no column 'kinds'" in message
    message = shell.fail("impute", fitted, "table.csv", "--target", "size")
    assert "--target size: the model learned from this column" in message
