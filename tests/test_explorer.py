"""The answers of the explorer are those of the models."""

import json

import numpy as np
import pandas as pd
import pytest
from helpers import plain_classifier, plain_regressor
from sequence_tools import SMALL, fitted_gestures, gestures

import hybridmix
from hybridmix import HMMDensity, MEDClassifier, MixtureDensity, MixtureNetworkRegressor
from hybridmix.data.shapes import ColumnShape
from hybridmix.exceptions import UnsupportedError
from hybridmix.explorer.plain import QuestionError, plain
from hybridmix.explorer.questions import asking
from hybridmix.explorer.subject import Explored
from hybridmix.explorer.tradeoffs import TRADEOFFS, TradeoffPath

CLASSES = np.array(["ash", "beech", "cedar"])


def make_table(n_rows=120, seed=0):
    """Real columns, one with a spike and one of whole numbers, and a category."""
    rng = np.random.default_rng(seed)
    label = rng.integers(3, size=n_rows)
    X = pd.DataFrame(
        {
            "height": 3.0 * label + rng.normal(size=n_rows),
            "width": np.exp(0.5 * rng.normal(size=n_rows) + 0.5 * label),
            "rain": np.where(rng.random(n_rows) < 0.4, 0.0, rng.gamma(2.0, 3.0, n_rows)),
            "rings": rng.poisson(20.0 + 5.0 * label).astype(float),
            "bark": np.where(rng.random(n_rows) < 0.2 + 0.3 * label, "rough", "smooth"),
        }
    )
    return X.mask(rng.random(X.shape) < 0.1), CLASSES[label]


@pytest.fixture(scope="module")
def table():
    return make_table()


@pytest.fixture(scope="module")
def classifier(table):
    X, y = table
    shapes = {"width": "positive", "rain": ColumnShape(spikes=(0.0,))}
    return plain_classifier(
        "likelihood", n_components=2, column_shapes=shapes, covariance_prior=1.0
    ).fit(X, y)


@pytest.fixture(scope="module")
def explored(classifier, table):
    return Explored.of(classifier, *table)


@pytest.fixture
def ask(explored):
    answer = asking(explored)
    return lambda name, **question: answer(name, question)


def row_of(ask, number):
    return ask("row", row=number)["cells"]


def without(cells, *columns):
    return [None if j in columns else value for j, value in enumerate(cells)]


def frame_of(explored, cells):
    """A row of the page as a data frame."""
    categories = dict(
        zip(explored.schema.categorical, explored.schema.categories, strict=True)
    )
    values = [
        categories[j][value] if j in categories and value is not None else value
        for j, value in enumerate(cells)
    ]
    frame = pd.DataFrame([values], columns=explored.schema.names)
    real = [explored.schema.names[j] for j in explored.schema.real]
    return frame.astype(dict.fromkeys(real, float) | {"bark": object})


def test_description(ask, table):
    about = ask("describe")
    assert [column["kind"] for column in about["columns"]] == ["real"] * 4 + [
        "categorical"
    ]
    assert about["columns"][3]["whole"]
    assert about["columns"][4]["categories"] == ["rough", "smooth"]
    assert about["classes"] == CLASSES.tolist()
    assert about["n_rows"] == len(table[0])
    assert about["first_row"] == 0
    assert about["has_labels"]
    assert about["has_path"]
    json.dumps(plain(about), allow_nan=False)


def test_rows_are_those_of_the_table(ask, table):
    X, y = table
    for number in range(10):
        found = ask("row", row=number)
        cells = plain(found["cells"])
        wanted = X.iloc[number, :4].astype(float)
        np.testing.assert_allclose(np.array(cells[:4], float), wanted, rtol=1e-5)
        assert CLASSES[found["label"]] == y[number]


@pytest.mark.parametrize("hidden", [(), (0,), (4,), (0, 2, 4), (0, 1, 2, 3, 4)])
def test_answers_are_those_of_the_model(ask, explored, classifier, hidden):
    cells = without(row_of(ask, 3), *hidden)
    answer = ask("answer", cells=cells)
    row = frame_of(explored, cells)
    np.testing.assert_allclose(
        answer["prediction"]["probabilities"], classifier.predict_proba(row)[0]
    )
    assert answer["typicality"] == pytest.approx(classifier.typicality(row)[0])
    for cell in answer["cells"]:
        column = cell["column"]
        rest = frame_of(explored, without(cells, column))
        filled = classifier.impute(rest).iloc[0, column]
        fill = cell["fill"]
        if column == 4:
            fill = explored.schema.categories[0][fill]
        assert fill == filled or fill == pytest.approx(filled)
        if cells[column] is not None:
            typicality = classifier.typicality(rest)[0]
            assert cell["rise"] == pytest.approx(typicality - answer["typicality"])
    json.dumps(plain(answer), allow_nan=False)


def test_pulls_are_differences_of_log_odds(ask, explored, classifier):
    cells = row_of(ask, 3)
    answer = ask("answer", cells=cells)

    def log_odds(cells, best):
        share = classifier.predict_proba(frame_of(explored, cells))[0, best]
        return np.log(share) - np.log1p(-share)

    best = int(np.argmax(answer["prediction"]["probabilities"]))
    for cell in answer["cells"]:
        rest = log_odds(without(cells, cell["column"]), best)
        assert cell["pull"] == pytest.approx(log_odds(cells, best) - rest, rel=1e-3)


def test_fills_are_conditional_distributions(ask, explored, classifier):
    cells = without(row_of(ask, 5), 1)
    answer = ask("answer", cells=cells)
    for cell in answer["cells"]:
        column = cell["column"]
        copies = pd.concat([frame_of(explored, cells)] * 60, ignore_index=True)
        if column == 4:
            copies = copies.iloc[:2].assign(bark=["rough", "smooth"])
            joint = np.exp(classifier.score_samples(copies))
            np.testing.assert_allclose(cell["probabilities"], joint / joint.sum())
            continue
        ends = explored.ranges[column]
        # A point on a spike would have a probability instead of a density.
        copies.iloc[:, column] = points = np.linspace(*ends, 60) + 1e-9
        rest = frame_of(explored, without(cells, column))
        log_density = classifier.score_samples(copies) - classifier.score_samples(rest)
        is_inside = points > 1e-6 * ends[1]
        np.testing.assert_allclose(
            np.array(cell["density"])[is_inside],
            np.exp(log_density)[is_inside],
            rtol=1e-4,
            atol=1e-8,
        )
        assert cell["low"] <= cell["high"]


def test_interval_of_a_fill(table):
    rng = np.random.default_rng(0)
    X = rng.multivariate_normal([0.0, 1.0], [[1.0, 0.6], [0.6, 1.0]], 4000)
    model = MixtureDensity(1, covariance_type="full", column_shapes="plain").fit(X)
    answer = asking(Explored.of(model, X))("answer", {"cells": [None, 2.0]})
    cell = answer["cells"][0]
    mean, covariance = model.means_[0], model.covariances_[0]
    slope = covariance[0, 1] / covariance[1, 1]
    centre = mean[0] + slope * (2.0 - mean[1])
    deviation = np.sqrt(covariance[0, 0] - slope * covariance[0, 1])
    assert cell["fill"] == pytest.approx(centre)
    assert cell["low"] == pytest.approx(centre - 1.6449 * deviation, rel=1e-3)
    assert cell["high"] == pytest.approx(centre + 1.6449 * deviation, rel=1e-3)


def test_densities_of_a_column(ask, classifier):
    answer = ask("density", columns=[0])
    points = np.array(answer["axes"][0]["points"])
    joint = np.array(answer["classes"])
    np.testing.assert_allclose(
        np.trapezoid(joint, points), classifier.class_prior_, rtol=0.03
    )
    of_classes = [
        np.array(answer["components"])[answer["component_classes"] == c].sum(axis=0)
        for c in range(3)
    ]
    np.testing.assert_allclose(of_classes, joint, rtol=1e-9)
    heights, edges = (np.array(answer["bins"][name]) for name in ("heights", "edges"))
    assert (heights * np.diff(edges)).sum() == pytest.approx(1.0)
    [spike] = ask("density", columns=[2])["spikes"]
    assert spike["value"] == 0.0
    assert spike["masses"].sum() == pytest.approx(0.4, abs=0.1)
    shares = np.array(ask("density", columns=[4])["classes"])
    np.testing.assert_allclose(shares.sum(axis=1), classifier.class_prior_)


@pytest.mark.parametrize("columns", [[0, 1], [0, 4], [4, 2]])
def test_densities_of_two_columns(ask, columns):
    answer = ask("density", columns=columns)
    shape = tuple(len(axis["points"]) for axis in answer["axes"])
    for name in ("level", "winner", "share"):
        assert np.shape(answer[name]) == shape
    inner, outer = answer["contours"]
    assert 1.0 >= inner > outer > 0.0
    assert len(answer["ellipses"]) == (6 if 4 not in columns else 0)
    assert set(answer["rows"]["label"]) == {0, 1, 2}
    json.dumps(plain(answer), allow_nan=False)


def test_unusual_rows(ask, classifier, table):
    X, _ = table
    strange = X.copy()
    strange.loc[7, "height"] = 60.0
    found = asking(Explored.of(classifier, strange))("unusual", {})
    first = found["rows"][0]
    assert (first["row"], first["guilty"]) == (7, 0)
    typicality = classifier.typicality(strange)
    assert [row["row"] for row in found["rows"]] == np.argsort(typicality)[:30].tolist()
    assert found["n_flagged"] == np.sum(typicality < np.log(0.01))


def test_samples_keep_the_cells_that_are_visible(ask):
    cells = without(row_of(ask, 3), 0, 4)
    found = ask("sample", n=20, seed=1, cells=cells)
    drawn = [row["cells"] for row in found["rows"]]
    for row in drawn:
        assert None not in row
        assert without(row, 0, 4) == cells
    assert len({row[0] for row in drawn}) == 20
    assert len(found["labels"]) == 20
    again = ask("sample", n=20, seed=1, cells=cells)
    assert [row["cells"] for row in again["rows"]] == drawn
    whole = ask("sample", n=5, seed=0, cells=[None] * 5)["rows"]
    assert all(row["cells"][3] == round(row["cells"][3]) for row in whole)


def test_wide_tables():
    X = np.random.default_rng(0).normal(size=(40, 130))
    model = MixtureDensity(1, covariance_type="diag").fit(X)
    ask = asking(Explored.of(model, X))
    assert ask("describe", {})["shown"] == list(range(100))
    answer = ask("answer", {"cells": ask("row", {"row": 0})["cells"]})
    assert len(answer["cells"]) == 100
    assert answer["typicality"] == pytest.approx(model.typicality(X[:1])[0])


def test_regression(table):
    X, _ = table
    y = pd.DataFrame({"a": X["height"].fillna(0.0), "b": X["rings"].fillna(0.0)})
    features = X.drop(columns="height")
    model = plain_regressor(n_components=2, covariance_prior=1.0).fit(features, y)
    explored = Explored.of(model, features, y)
    ask = asking(explored)
    assert ask("describe", {})["targets"] == ["a", "b"]
    row = ask("row", {"row": 2})
    np.testing.assert_allclose(row["targets"], y.iloc[2])
    targets = ask("answer", {"cells": row["cells"]})["prediction"]["targets"]
    mean, deviation = model.predict(features.iloc[[2]], return_std=True)
    low, high = model.predict_interval(features.iloc[[2]])[0].T
    for k, target in enumerate(targets):
        assert target["mean"] == pytest.approx(mean[0, k])
        assert target["deviation"] == pytest.approx(deviation[0, k])
        assert target["quantiles"][0] == pytest.approx(low[k])
        assert target["quantiles"][-1] == pytest.approx(high[k])
        mass = np.trapezoid(target["density"], target["points"])
        assert mass == pytest.approx(0.998, abs=5e-3)
    assert "targets" in ask("sample", {"n": 2, "seed": 0, "cells": row["cells"]})


def test_targets_of_a_network(table):
    X, _ = table
    y = X["rings"].fillna(0.0)
    features = X[["height", "width"]]
    model = MixtureNetworkRegressor(n_components=2, random_state=0).fit(features, y)
    ask = asking(Explored.of(model, features, y))
    answer = ask("answer", {"cells": ask("row", {"row": 4})["cells"]})
    [target] = answer["prediction"]["targets"]
    assert target["mean"] == pytest.approx(model.predict(features.iloc[[4]])[0])
    low, high = model.predict_interval(features.iloc[[4]])[0]
    assert target["quantiles"][0] == pytest.approx(low)
    assert target["quantiles"][-1] == pytest.approx(high)


def test_targets_with_spikes(table):
    X, _ = table
    known = X["rain"].notna()
    features, y = X.loc[known, ["height", "width"]], X.loc[known, "rain"]
    model = plain_regressor(target_shapes="auto", covariance_prior=1.0).fit(features, y)
    answer = asking(Explored.of(model, features, y))("answer", {"cells": [1.0, 2.0]})
    [target] = answer["prediction"]["targets"]
    [(value, mass)] = target["spikes"]
    assert value == 0.0
    assert mass == pytest.approx(0.4, abs=0.15)


def test_without_a_table(table):
    X, _ = table
    model = MixtureDensity(2, covariance_type="diag", random_state=0).fit(X)
    explored = Explored.of(model)
    ask = asking(explored)
    about = ask("describe", {})
    assert about["is_drawn"]
    assert not about["has_path"]
    answer = ask("answer", {"cells": ask("row", {"row": 0})["cells"]})
    assert np.sum(answer["prediction"]["probabilities"]) == pytest.approx(1.0)
    with pytest.raises(ValueError, match="add X"):
        Explored.of(model, None, np.zeros(3))


def test_tradeoff_path(table):
    X, y = table
    model = plain_classifier(n_components=1, n_steps=3, tradeoff=1.0).fit(X, y)
    explored = Explored.of(model, X, y)
    path = TradeoffPath(explored)
    path.start()
    path.wait()
    status = path.status()
    assert status["problem"] is None
    assert status["n_done"] == len(TRADEOFFS)
    models = [path.station(number).model for number in range(len(TRADEOFFS))]
    assert [one.tradeoff for one in models] == list(TRADEOFFS)
    likelihoods = [one.score_samples(X).mean() for one in models]
    assert likelihoods[0] >= max(likelihoods)
    assert path.station(None) is explored
    with pytest.raises(QuestionError, match="'station' must be"):
        path.station(99)


def test_path_of_other_columns(table):
    X, y = table
    model = plain_classifier(n_components=1, n_steps=2, tradeoff=1.0).fit(X, y)
    path = TradeoffPath(Explored.of(model, X.assign(bark="rough"), y))
    path.start()
    path.wait()
    assert "other columns or categories" in path.status()["problem"]
    density = MixtureDensity(1, covariance_type="diag").fit(X)
    with pytest.raises(QuestionError, match="no tradeoffs"):
        TradeoffPath(Explored.of(density, X)).start()


# Sequences ------------------------------------------------------------------------------


def test_sequences():
    model, X, y = fitted_gestures()
    ask = asking(Explored.of(model, X, y))
    found = ask("row", {"row": 5})
    assert found["name"] == str(X.ids[5])
    assert model.classes_[found["label"]] == y[5]
    frames = found["frames"]
    assert len(frames) == X.lengths[5]
    answer = ask("answer", {"frames": frames})
    one = X[[5]]
    np.testing.assert_allclose(answer["probabilities"], model.predict_proba(one)[0])
    assert answer["path"].tolist() == model.decode(one)[1][0].tolist()
    np.testing.assert_allclose(answer["states"].T, model.state_proba(one)[0])
    filled = model.impute(one).frames
    np.testing.assert_allclose([frame[0] for frame in answer["fills"]], filled["x"])
    typicality = ask("typicality", {"frames": frames})["typicality"]
    assert typicality == pytest.approx(model.typicality(one)[0])
    other = ask("answer", {"frames": frames, "class": 1 - answer["class"]})
    wanted = model.decode(one, y=[model.classes_[1 - answer["class"]]])[1][0]
    assert other["path"].tolist() == wanted.tolist()
    unusual = ask("unusual", {})["rows"]
    assert unusual[0]["log_density"] <= unusual[-1]["log_density"]
    samples = ask("sample", {"n": 3, "seed": 0})
    assert len(samples["rows"]) == len(samples["labels"]) == 3
    json.dumps(plain([answer, unusual, samples]), allow_nan=False)
    with pytest.raises(QuestionError, match="at least one frame"):
        ask("answer", {"frames": []})


def test_density_of_sequences():
    X, _ = gestures()
    options = {name: SMALL[name] for name in ("topology", "covariance_type")}
    model = HMMDensity(2, random_state=0, **options).fit(X)
    ask = asking(Explored.of(model))
    answer = ask("answer", {"frames": ask("row", {"row": 0})["frames"]})
    assert "probabilities" not in answer
    assert set(answer["path"].tolist()) <= {0, 1}


# Errors ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "question", "message"),
    [
        ("nothing", {}, "There is no question 'nothing'; there are describe, "),
        ("row", {"row": 1000}, "'row' must be a whole number from 0 to 119, not 1000"),
        ("row", {"row": True}, "not True"),
        ("row", {}, "not None"),
        ("answer", {}, "A row must be a list of 5 values"),
        ("answer", {"cells": [0] * 4}, "A row must be a list of 5 values"),
        ("answer", {"cells": ["x", 0, 0, 0, 0]}, "column 'height' holds numbers: 'x'"),
        ("answer", {"cells": [0, 0, 0, 0, 2]}, "column 'bark' has 2 categories"),
        ("answer", {"cells": [0, 0, 0, 0, 0], "station": 0}, "'station' must be null"),
        ("density", {"columns": 0}, "one or two positions"),
        ("density", {"columns": ["height"]}, "one or two positions"),
        ("density", {"columns": [0, 0]}, "no density of the columns"),
        ("density", {"columns": [9]}, "no density of the columns"),
        ("sample", {"n": 1000, "seed": 0, "cells": [None] * 5}, "'n' must be"),
        ("sample", {"n": 1, "seed": -1, "cells": [None] * 5}, "'seed' must be"),
    ],
)
def test_wrong_questions(ask, name, question, message):
    with pytest.raises(QuestionError, match=message):
        ask(name, **question)


def test_models_that_cannot_be_explored(table):
    X, y = table
    X = X[["height", "rings"]].fillna(0.0)
    with pytest.raises(TypeError, match="this is a MEDClassifier"):
        hybridmix.explore(MEDClassifier().fit(X, y))
    network = MixtureNetworkRegressor(n_components=2, output="epsilon").fit(X, X["rings"])
    with pytest.raises(UnsupportedError, match="predictive distribution"):
        hybridmix.explore(network)
