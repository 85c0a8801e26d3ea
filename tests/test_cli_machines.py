"""Machines of maximum entropy discrimination on the command line."""

import json

import numpy as np
import pytest
from cli_tools import pd, read, write

import hybridmix
from hybridmix import MEDClassifier, MEDOutlierDetector, MEDRegressor

RNG = np.random.default_rng(0)
TABLE = pd.DataFrame(RNG.normal(size=(60, 3)), columns=["a", "b", "c"])
LABELS = np.where(TABLE["a"] + 0.3 * RNG.normal(size=60) > 0.0, "yes", "no")


@pytest.fixture
def classifier(shell):
    model = MEDClassifier(random_state=0).fit(TABLE, LABELS)
    hybridmix.save(model, "model.hmx")
    write(TABLE.assign(label=LABELS), "table.csv")
    return model


def test_classes_are_predicted_and_evaluated(shell, classifier):
    shell.run("predict", "model.hmx", "table.csv", "-o", "out.csv")
    out = read("out.csv")
    assert out["predicted"].tolist() == classifier.predict(TABLE).tolist()
    probabilities = out[["probability_no", "probability_yes"]]
    np.testing.assert_allclose(probabilities, classifier.predict_proba(TABLE), 1e-6)
    command = ["evaluate", "model.hmx", "table.csv", "--target", "label", "--json"]
    told = json.loads(shell.run(*command))
    assert told["accuracy"] == pytest.approx(classifier.score(TABLE, LABELS))
    assert told["provenance"]["origin"] == "unknown"


def test_columns_and_weights_are_shown(shell, classifier):
    told = json.loads(shell.run("inspect", "model.hmx", "--json"))
    assert [column["type"] for column in told["columns"]] == ["real"] * 3
    assert told["weights"]["a"] == pytest.approx(classifier.coef_[:, 0].tolist())
    shown = shell.run("inspect", "model.hmx")
    assert shown.index("a ", shown.index("largest weights")) > 0


def test_tables_with_categories_and_holes_are_read_by_their_schema(shell):
    table = TABLE.assign(kind=np.where(LABELS == "yes", "x", "y"))
    table.loc[::5, ["a", "kind"]] = None
    model = MEDClassifier("independent", random_state=0).fit(table, LABELS)
    hybridmix.save(model, "model.hmx")
    write(table, "table.csv")
    shell.run("predict", "model.hmx", "table.csv", "-o", "out.csv")
    assert read("out.csv")["predicted"].tolist() == model.predict(table).tolist()


def test_numbers_are_predicted_without_intervals(shell):
    model = MEDRegressor().fit(TABLE[["a", "b"]], TABLE["c"])
    hybridmix.save(model, "model.hmx")
    write(TABLE, "table.csv")
    shell.run("predict", "model.hmx", "table.csv", "-o", "out.csv")
    out = read("out.csv")
    np.testing.assert_allclose(out["predicted"], model.predict(TABLE[["a", "b"]]), 1e-6)
    assert "predicted_low" not in out
    told = shell.fail("evaluate", "model.hmx", "table.csv", "--target", "c")
    assert "no predictive distribution" in told
    assert "output=" not in told


@pytest.mark.parametrize(
    "command",
    [
        ["predict", "model.hmx", "table.csv", "--density"],
        ["impute", "model.hmx", "table.csv"],
        ["outliers", "model.hmx", "table.csv"],
        ["report", "model.hmx", "table.csv", "-o", "report.html"],
        ["explore", "model.hmx"],
        ["explore", "model.hmx", "table.csv"],
        ["sample", "model.hmx"],
    ],
    ids=" ".join,
)
def test_what_needs_a_density_is_refused(shell, classifier, command):
    assert "no density of the rows" in shell.fail(*command)


def test_detectors_are_for_python(shell):
    hybridmix.save(MEDOutlierDetector().fit(TABLE), "model.hmx")
    write(TABLE, "table.csv")
    told = shell.fail("predict", "model.hmx", "table.csv")
    assert "no density of the rows" in told
