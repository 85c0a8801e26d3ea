"""The report on sequences."""

import numpy as np
import pytest
from sequence_tools import fitted_gestures, gestures
from test_report import check

from hybridmix import HMMDensity, HybridHMMClassifier
from hybridmix.data.columns import read_columns
from hybridmix.reporting import report
from hybridmix.reporting.graphs import transition_graph
from hybridmix.reporting.sections import OF_SEQUENCES
from hybridmix.reporting.sections.states import resampled
from hybridmix.reporting.sequence_subject import SequenceSubject
from hybridmix.tasks import task_of
from hybridmix.tasks.sequences import frame_summaries

ALL = {section.anchor for section in OF_SEQUENCES}
OF_DENSITIES = ALL - {"errors", "worked"}


@pytest.fixture(scope="module")
def fitted():
    return fitted_gestures()


def test_unseen_sequences_are_scored_by_the_model_as_it_is(fitted):
    model, _, _ = fitted
    X, y = gestures(20, 1, 3)
    html = report(model, X, y, title="Gestures", cv=2).html
    page = check(html, ALL)
    known = np.array([label is not None for label in y])
    accuracy = model.score(X[known], y[known])
    assert (
        "None of these 20 sequences equals a training sequence." in page.text["quality"]
    )
    assert page.tables["quality"][0][1][1].startswith(f"{accuracy:.3f} (")
    names = [row[0] for row in page.tables["quality"][1][1:]]
    assert names == ["this model", "logistic regression", "most frequent class"]
    confusion = page.tables["errors"][0]
    counts = [[int(cell.split()[0]) for cell in row[1:3]] for row in confusion[1:]]
    assert np.sum(counts) == known.sum()
    assert np.trace(counts) == round(accuracy * known.sum())
    wrong = int(known.sum()) - np.trace(counts)
    shown = page.tables.get("decoded", [[]])[0][1:]
    assert len(shown) == wrong
    assert " rows" not in page.text["quality"] + page.text["errors"]


def test_training_sequences_are_scored_by_folds(fitted):
    model, X, y = fitted
    page = check(report(model, X, y, cv=2, baselines=False).html, ALL)
    assert "The model was trained on these 30 sequences." in page.text["summary"]
    assert "as predicted by the models of the folds" in page.text["errors"]
    # Folds are trained with the options of the model.
    subject = SequenceSubject.of(model, X, y, 2, False, 0)
    again = task_of(model).fresh_model(subject)
    assert again.get_params() == model.get_params()


def test_states_are_those_of_the_model(fitted):
    model, X, y = fitted
    page = check(report(model, X, y, cv=2, baselines=False).html, ALL)
    first = page.tables["states"][0]
    assert first[0] == ["state", "starts", "frames", "mean stay", "x", "y", "hand"]
    stay = 1.0 / (1.0 - model.transitions_[0, 0, 0])
    assert first[1][:2] == ["state 0", "100 %"]
    assert float(first[1][3]) == pytest.approx(stay, abs=0.06)
    assert first[3][3] == "to the end"
    # What frames of a state are like, in the units of the table.
    assert float(first[2][4].split()[0]) == pytest.approx(3.0, abs=0.5)
    labels = [y[k] or model.predict(X[[k]])[0] for k in range(len(X))]
    proba = model.state_proba(X, y=labels)
    own = np.concatenate([p for p, c in zip(proba, labels, strict=True) if c == "circle"])
    share = float(first[1][2].split()[0]) / 100.0
    assert share == pytest.approx(own[:, 0].mean(), abs=6e-4)


def test_paths_of_examples(fitted):
    model, X, y = fitted
    subject = SequenceSubject.of(model, X, y, 2, False, 0)
    page = check(report(model, X, y, cv=2, baselines=False).html, ALL)
    n_shown = 0
    for number, path in enumerate(subject.paths):
        name = f"Sequence {X.ids[number]}, label"
        if name in page.text["decoded"]:
            told = page.text["decoded"].split(name)[1].split("Path: ")[1].split(".")[0]
            runs = [part.removeprefix("state ") for part in told.split(", ")]
            states = [int(s) for run in runs for s in [run[0]] * int(run.split()[-1])]
            assert states == path.tolist()
            n_shown += 1
    assert n_shown == 4


def test_a_density_of_sequences(fitted):
    _, X, _ = fitted
    density = HMMDensity(3, topology="ergodic", covariance_type="diag", random_state=0)
    page = check(report(density.fit(X), X, cv=2).html, OF_DENSITIES)
    rows = page.tables["quality"][0][1:]
    assert [row[0] for row in rows] == ["this model", "frames in any order"]
    ordered, unordered = (
        float(row[1].split()[0].replace("\N{MINUS SIGN}", "-")) for row in rows
    )
    assert ordered > unordered
    assert "States over time" in page.text["states"]


def test_without_labels_and_with_a_search():
    X, y = gestures(16)
    model = HybridHMMClassifier(2, covariance_type="diag", random_state=0).fit(X, y)
    page = check(report(model, X, cv=2, baselines=False).html, ALL)
    assert "No labels were given" in page.text["quality"]
    assert "a committee of" in page.text["summary"]
    assert "compared on held-out sequences" in page.text["training"]


def test_lists_long_sequences_and_many_states():
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(n, 1)) for n in (3, 1, 200, 90)]
    model = HMMDensity(9, topology="ergodic", covariance_type="diag", random_state=0)
    page = check(report(model.fit(X), X, baselines=False).html, OF_DENSITIES)
    assert "Scores need 10 sequences or more" in page.text["quality"]
    assert "more changes" in page.text["decoded"]


def test_a_missing_class_and_equal_lengths(fitted):
    model, X, y = fitted
    only = [k for k in range(len(X)) if y[k] == "wave"]
    part = [frames[:5] for frames in X[only]]
    page = check(report(model, part, y[only], cv=2, baselines=False).html, ALL)
    assert "All sequences have 5 frames." in page.text["data"]
    assert "No sequence of this class was given." in page.text["states"]


def test_graphs_of_states():
    forward = np.array([[0.9, 0.1], [0.0, 1.0]])
    picture = transition_graph(forward, "two states")
    assert picture.count('class="arrow"') == 1
    assert "state 0 to 1: 10 %" in picture
    back = np.array([[0.5, 0.5, 0.0], [0.01, 0.0, 0.99], [0.3, 0.3, 0.4]])
    # Transitions that hardly ever happen are left out.
    assert transition_graph(back, "three states").count('class="arrow"') == 4
    assert transition_graph(np.ones((1, 1)), "one").count("<circle") == 1


def test_values_at_equal_distances():
    values = np.arange(4.0)[:, None]
    assert resampled(values, 2).ravel().tolist() == [1.0, 3.0]
    assert resampled(values, 8).ravel().tolist() == [0, 0, 1, 1, 2, 2, 3, 3]


def test_summaries_do_not_depend_on_the_order_of_frames(fitted):
    model, X, _ = fitted
    table = model.schema_.encode(read_columns(X.frames))
    found = frame_summaries(table, X.lengths)
    assert found.shape == (30, 2 * 2 + 2 + 1)
    scaled = (X[3]["x"] - model.schema_.centre[0]) / model.schema_.scale[0]
    assert found[3, 0] == pytest.approx(scaled.mean())
    assert found[3, 2] == pytest.approx(scaled.std(ddof=0))
    assert found[3, 4] == pytest.approx((X[3]["hand"] == "left").mean())
    assert found[3, -1] == len(X[3])
