"""The report: its figures, its text, and tables of all kinds."""

import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import polars as pl
import pytest
from helpers import plain_classifier, plain_regressor
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine
from sklearn.metrics import log_loss, roc_auc_score
from threadpoolctl import threadpool_limits

import hybridmix
from hybridmix import (
    HybridMixtureClassifier,
    HybridMixtureClassifierCV,
    MixtureDensity,
    MixtureImputer,
    MixtureOutlierDetector,
)
from hybridmix.progress import listening
from hybridmix.reporting import report
from hybridmix.reporting.charts import interval_chart
from hybridmix.reporting.markup import NONE, number, percent, tick_texts, with_deviation
from hybridmix.reporting.plane import ticks
from hybridmix.reporting.sections import SECTIONS, training
from hybridmix.reporting.subject import Subject
from hybridmix.tasks import baselines, trials
from hybridmix.tasks.base import dealt_folds

ALL = {section.anchor for section in SECTIONS}
OF_CLASSES = ALL - {"predictions", "dependence"}
OF_NUMBERS = ALL - {"errors"}
WITHOUT_CLASSES = OF_CLASSES - {"errors", "missing", "features", "worked"}
MINUS = "\N{MINUS SIGN}"
VOID = {"meta", "link", "br", "img", "hr"}


class Page(HTMLParser):
    """The structure of a page, and its text by section."""

    def __init__(self, html):
        super().__init__()
        self.open, self.ids, self.tags, self.references = [], [], [], []
        self.section, self.text = "", {}
        self.tables = {}
        self.feed(html)
        assert self.open == [], self.open

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.tags.append(tag)
        self.ids += [attributes["id"]] if "id" in attributes else []
        self.references += [attributes[k] for k in ("href", "src") if k in attributes]
        if tag not in VOID:
            self.open.append(tag)
        if tag == "section":
            self.section = attributes["id"]
        if tag == "tr":
            self.row = []
        if tag == "table":
            self.rows = []

    def handle_startendtag(self, tag, attributes):
        self.tags.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag
        if tag == "tr":
            self.rows.append(self.row)
        if tag == "table":
            self.tables.setdefault(self.section, []).append(self.rows)

    def handle_data(self, data):
        data = data.replace("\N{NO-BREAK SPACE}", " ")
        own = self.text.get(self.section, "")
        self.text[self.section] = own + data
        if self.open and "tr" in self.open and data.strip():
            self.row.append(data)


def check(html, sections=None):
    """Check what holds for every report, and return its structure."""
    page = Page(html)
    assert len(set(page.ids)) == len(page.ids)
    expected = OF_CLASSES if sections is None else sections
    assert set(page.text) - {""} == expected
    # Nothing is loaded: links lead within the page.
    assert set(page.references) == {f"#{anchor}" for anchor in expected} | {"data:,"}
    assert not re.search(r"https?:|@import|url\(|<script", html)
    assert "nan" not in re.sub(r"\w{4,}", "", html)
    for picture in re.findall(r"<svg.*?</svg>", html, re.S):
        ET.fromstring(picture)
    assert len(html) < 1_000_000
    return page


def wine():
    """Some wines with holes, half of them unlabelled."""
    X, y = load_wine(return_X_y=True, as_frame=True)
    X, y = X.iloc[::2, :5], y.iloc[::2].copy()
    X = X.mask(np.random.default_rng(0).random(X.shape) < 0.2)
    y.iloc[::3] = -1
    return X, y


@pytest.fixture(scope="module")
def fitted():
    X, y = wine()
    model = plain_classifier("likelihood", unlabelled_weight=0.5, random_state=0)
    return model.fit(X, y), X, y


@pytest.fixture(scope="module")
def written(fitted):
    return report(*fitted, title="Wine", cv=2)


# Figures ------------------------------------------------------------------------------


def test_sections_and_structure(written):
    page = check(written.html)
    assert "Wine" in page.text[""]
    assert page.tags.count("h1") == 1
    assert page.tags.count("caption") == page.tags.count("table")
    assert page.tags.count("figcaption") == page.tags.count("figure")
    assert written.html.count('role="img"') >= 8
    assert "default-src 'none'" in written.html


def test_quality_is_that_of_models_trained_without_the_fold(fitted, written):
    model, X, y = fitted
    subject = Subject.of(model, X, y, 2, False, 0)
    found = trials.cross_validated(subject.task, subject, with_baselines=False)
    assert sorted(found.rows) == np.flatnonzero(y != -1).tolist()
    accuracies, losses, areas = [], [], []
    for fold in range(2):
        held = found.rows[found.folds == fold]
        rest = np.setdiff1d(np.arange(len(y)), held)
        again = clone(model).fit(X.iloc[rest], y.iloc[rest])
        probabilities = again.predict_proba(X.iloc[held])
        accuracies.append(again.score(X.iloc[held], y.iloc[held]))
        losses.append(log_loss(y.iloc[held], probabilities))
        areas.append(roc_auc_score(y.iloc[held], probabilities, multi_class="ovr"))
    np.testing.assert_allclose(found.ours.values("accuracy"), accuracies)
    np.testing.assert_allclose(found.ours.values("log loss"), losses)
    np.testing.assert_allclose(found.ours.values("ROC AUC"), areas)
    ours = check(written.html).tables["quality"][0][1]
    expected = f"{np.mean(accuracies):.3f} ± {np.std(accuracies, ddof=1):.3f}"
    assert ours[0] == "this model"
    assert ours[1] == expected


def test_confusion_counts_all_held_rows(fitted, written):
    confusion = check(written.html).tables["errors"][0]
    counts = np.array(
        [[int(cell.split()[0]) for cell in row[1:-1]] for row in confusion[1:]]
    )
    expected = np.bincount(fitted[2][fitted[2] != -1])
    np.testing.assert_array_equal(counts[:, :-1].sum(axis=1), expected)
    np.testing.assert_array_equal(counts[:, -1], counts[:, :-1].sum(axis=1))


def test_folds():
    labels = np.array([0] * 7 + [1] * 3 + [2] + [-1] * 4)
    folds = dealt_folds(labels, 5, np.random.default_rng(0))
    assert np.all(folds[10:] == -1)  # a class of one row, and rows without a label
    assert np.bincount(folds[:10]).tolist() == [2, 2, 2, 2, 2]
    assert len(set(folds[7:10])) == 3
    assert dealt_folds(labels[:3], 5, np.random.default_rng(0)).max() == 2


def test_baselines_on_the_same_rows(written):
    page = check(written.html)
    names = [row[0] for row in page.tables["quality"][0][1:]]
    assert names[1:] == ["logistic regression", "boosted trees", "most frequent class"]
    assert [row[0] for row in page.tables["missing"][0][1:]] == names
    shares = [float(row[3].split()[0]) for row in page.tables["quality"][0][1:]]
    assert shares[-1] > 0


def test_most_unusual_rows_and_their_cells(fitted):
    model, X, y = fitted
    X = X.copy()
    X.iloc[4, 2] = 9.0  # far beyond the others
    X.index = [f"bottle {k}" for k in range(len(X))]
    page = check(report(model, X, y, cv=2, baselines=False).html)
    listed = [row[0] for row in page.tables["density"][0][1:]]
    order = np.argsort(model.typicality(X), kind="stable")[:10]
    assert listed == X.index[order].tolist()
    assert page.tables["density"][0][1][0] == "bottle 4"
    assert "".join(page.tables["density"][0][1][3:]).startswith("ash 9 (expected 2.")


def test_importance_finds_the_column_that_matters():
    rng = np.random.default_rng(0)
    y = np.repeat(["a", "b"], 40)
    X = rng.normal(size=(80, 3))
    X[:, 1] += 4.0 * (y == "b")
    model = plain_classifier("likelihood", random_state=0).fit(X, y)
    page = check(report(model, X, y, cv=2, baselines=False).html)
    assert "in bold" not in page.text["quality"]  # of a single model nothing is best
    assert page.tables["features"][0][1][0] == "column 1"
    profile = next(row for row in page.tables["components"][1] if row[0] == "column 1")
    assert float(profile[2].split()[1].replace(MINUS, "-")) == pytest.approx(
        model.means_[0, 1], abs=0.06
    )


def test_parts_agree_about_held_out_rows(written):
    tables = check(written.html).tables
    accuracies = [row[1].split()[0] for row in tables["quality"][0][1:]]
    assert [row[1] for row in tables["missing"][0][1:]] == accuracies
    text = check(written.html).text["features"]
    assert f"log loss {tables['quality'][0][1][3].split()[0]}" in text
    assert f"accuracy {accuracies[0]}" in text


def test_components_that_overlap():
    X = np.random.default_rng(0).normal(size=(200, 1))
    density = MixtureDensity(
        4, random_state=0, covariance_type="full", covariance_prior=1.0
    ).fit(X)
    page = check(report(density, X).html, WITHOUT_CLASSES)
    # Many rows are as typical as can be, but some of them are denser.
    assert np.mean(density.typicality(X) > -1e-6) > 0.2
    component, log_density = density.predict(X), density.score_samples(X)
    for place, row in enumerate(page.tables["components"][0][1:]):
        own = np.where(component == place, log_density, -np.inf)
        assert int(row[3].split(",")[0]) == own.argmax()
    # Typicality is but an upper bound.
    sample, _ = density.sample(10_000)
    assert np.mean(density.typicality(sample) < np.log(0.01)) < 0.005
    assert "own rows, about 1 % or fewer" in page.text["density"]


# Text ---------------------------------------------------------------------------------


def test_user_text_is_escaped():
    evil = "<script>alert('x')</script>&\""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            evil: rng.normal(size=30),
            f"{evil}2": rng.choice([evil, "<b>", "c"], 30),
        },
        index=[f"{evil}{k}" for k in range(30)],
    ).mask(rng.random((30, 2)) < 0.2)
    y = np.where(np.arange(30) % 2, evil, "<i>")
    model = plain_classifier("likelihood", n_components=2).fit(X, y)
    written = report(model, X, y, title=evil, cv=2)
    page = check(written.html)
    assert evil in page.text["data"]
    assert evil in page.text["density"]
    assert "i" not in page.tags
    assert "script" not in page.tags
    assert "&lt;iframe" not in written._repr_html_()
    frame = Page(written._repr_html_())
    assert frame.tags == ["iframe"]


def test_control_characters_are_shown_and_not_obeyed():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {"a\x1b[31m": rng.normal(size=30), "b": rng.choice(["\u202eu", "v"], 30)}
    )
    y = np.where(np.arange(30) % 2, "yes\x07", "no")
    model = plain_classifier("likelihood").fit(X, y)
    html = report(model, X, y, title="t\x9b", cv=2, baselines=False).html
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", html)
    for shown in (r"a\x1b[31m", r"\u202eu", r"yes\x07", r"t\x9b"):
        assert shown in html


def test_numbers():
    assert [number(v) for v in (0.12345, -1234.5, 1e8, 2e-12, 43200.0, np.inf)] == [
        "0.1235",
        f"{MINUS}1234",
        "1e8",
        f"2e{MINUS}12",
        "43200",
        NONE,
    ]
    assert [percent(v) for v in (0.0, 1e-5, 0.5, 0.99999, 1.0)] == [
        "0 %",
        "< 0.1 %",
        "50 %",
        "> 99.9 %",
        "100 %",
    ]
    assert with_deviation(0.96142, 0.2345) == "0.96 ± 0.23"
    assert with_deviation(-0.001, 1.0) == "0.0 ± 1.0"
    assert with_deviation(5.0, 0.0) == "5 ± 0"


@pytest.mark.parametrize(
    "limits", [(0.0, 1.0), (-3e-7, 4e-7), (17.0, 1e9), (-5.0, -4.9), (1e300, 1.1e300)]
)
def test_ticks_are_few_round_and_different(limits):
    found = ticks(*limits)
    assert 2 <= len(found) <= 7
    slack = 1e-9 * (limits[1] - limits[0])
    assert limits[0] - slack <= found[0] < found[-1] <= limits[1] + slack
    assert len(set(tick_texts(found))) == len(found)


def test_errors_are_not_negative_even_where_there_are_none():
    errors = {"training error": np.zeros(5), "validation error": np.zeros(5)}
    assert MINUS not in training._trace_figure("Share of wrong predictions", errors)


def test_polars_like_pandas():
    X, y = load_iris(return_X_y=True, as_frame=True)
    X = X.iloc[::3].reset_index(drop=True)
    X["size"] = np.where(X.iloc[:, 0] > 5.8, "large", "small")
    X = X.mask(np.random.default_rng(0).random(X.shape) < 0.1)
    y = y.to_numpy()[::3]
    pages = []
    for table in (X, pl.from_pandas(X)):
        model = plain_classifier("likelihood", random_state=0).fit(table, y)
        html = report(model, table, y, cv=2, baselines=False).html
        html = html.replace("each by its index", "each by its number, from 0")
        pages.append(html.replace("polars", "pandas"))
    assert pages[0] == pages[1]


# Models -------------------------------------------------------------------------------


class MixtureOfTheirOwn(MixtureDensity):
    purpose = "does what nobody has thought of yet"


@pytest.mark.parametrize(
    ("model", "purpose"),
    [
        (
            MixtureDensity(
                [1, 2], random_state=0, covariance_type="full", covariance_prior=1.0
            ),
            "models the density of the rows",
        ),
        (
            MixtureImputer(1, covariance_type="full", covariance_prior=1.0),
            "fills the holes of a table",
        ),
        (
            MixtureOutlierDetector(
                1, contamination=0.1, covariance_type="full", covariance_prior=1.0
            ),
            "flags rows",
        ),
        (MixtureOfTheirOwn(1), "does what nobody has thought of yet."),
    ],
    ids=lambda part: part if isinstance(part, str) else type(part).__name__,
)
def test_models_without_classes(model, purpose, fitted):
    X = fitted[1]
    page = check(report(model.fit(X), X).html, WITHOUT_CLASSES)
    assert f"{type(model).__name__} {purpose}" in page.text["summary"]
    assert "label" not in page.text["data"]
    if isinstance(model, MixtureOutlierDetector):
        assert number(model.offset_)[:4] in page.text["density"]


def test_search_is_reported_by_its_best_model():
    X, y = load_iris(return_X_y=True)
    search = HybridMixtureClassifierCV(
        n_components=[1], covariance_type=["tied", "diag"], tradeoff=[0, 1], cv=2
    ).fit(X[::3], y[::3])
    page = check(report(search, X[::3], y[::3], cv=2, baselines=False).html)
    assert "The search chose" in page.text["summary"]
    assert "a little too good" in page.text["quality"]
    assert len(page.tables["training"][-1]) == 5


@pytest.mark.parametrize("objective", ["likelihood", "hybrid", "conditional", "margin"])
def test_densities_that_nothing_made_fit_the_rows(objective):
    X, y = load_iris(return_X_y=True)
    model = plain_classifier(objective, n_steps=2).fit(X, y)
    page = check(report(model, X, None).html)
    is_warned = "need not fit" in page.text["density"]
    assert is_warned == (objective in ("conditional", "margin"))


def test_committees_say_what_votes_and_what_is_the_density():
    X, y = load_iris(return_X_y=True)
    X[::7, 1] = np.nan
    model = HybridMixtureClassifier("conditional", n_steps=4, random_state=0).fit(X, y)
    page = check(report(model, X, y, cv=2, baselines=False).html)
    n_members = len(model.members_)
    assert f"a committee of {n_members} mixtures" in page.text["summary"]
    assert "choice of the model was repeated" in page.text["quality"]
    assert "components of the density" in page.text["components"]
    # The density comes from EM, whatever the members maximise.
    assert "need not fit" not in page.text["density"]
    assert "Members of the committee" in page.text["training"]
    for row in model.leaderboard_:
        assert row["candidate"] in page.text["training"]


def test_folds_of_a_fitted_start_search_as_little_as_it_did():
    X, y = load_iris(return_X_y=True)
    committee = HybridMixtureClassifier(random_state=0).fit(X, y)
    start = committee.members_[0]
    model = HybridMixtureClassifier(init=start, n_steps=2).fit(X, y)
    subject = Subject.of(model, X, y, 2, False, 0)
    fresh = subject.task.fresh_model(subject)
    assert fresh.covariance_type == start.covariance_type
    assert fresh.tradeoff == 10.0
    assert not hasattr(fresh.fit(X, y), "leaderboard_")


def test_folds_take_as_many_steps_as_a_search():
    X, y = load_iris(return_X_y=True)
    search = HybridMixtureClassifierCV(
        plain_classifier(n_steps=12),
        n_components=[1],
        covariance_type="tied",
        tradeoff=[0, 1, 2, 4],
        cv=2,
    ).fit(X[::3], y[::3])
    for tradeoff, n_steps in ((0, 4), (1, 4), (2, 8), (4, 12)):
        search.best_params_["tradeoff"] = tradeoff
        subject = Subject.of(search, X, y, 2, False, 0)
        fresh = subject.task.fresh_model(subject)
        assert fresh.n_steps == n_steps


def test_the_call_makes_the_report_again(fitted, written, tmp_path, monkeypatch):
    model, X, y = fitted
    call = "import hybridmix" + written.html.split("import hybridmix")[1]
    call = call.split("</code>")[0].replace("&quot;", '"')
    monkeypatch.chdir(tmp_path)
    exec(call, {"model": model, "X": X, "y": y})
    again = (tmp_path / "report.html").read_text("utf-8")
    title = "Report on a HybridMixtureClassifier"
    assert again.replace(title, "Wine") == written.html


def test_loaded_models_have_the_same_report(fitted, written, tmp_path):
    model, X, y = fitted
    hybridmix.save(model, tmp_path / "model.hmx")
    loaded = hybridmix.load(tmp_path / "model.hmx")
    assert report(loaded, X, y, title="Wine", cv=2).html == written.html


def test_marginals_have_no_traces(fitted):
    X = fitted[1]
    marginal = (
        MixtureDensity(2, random_state=0, covariance_type="full", covariance_prior=1.0)
        .fit(X)
        .marginal(["alcohol", "ash"])
    )
    page = check(report(marginal, X[["alcohol", "ash"]]).html, WITHOUT_CLASSES)
    assert "no traces" in page.text["training"]


def test_a_fitted_start_does_not_see_held_out_rows(fitted):
    model, X, y = fitted
    continued = plain_classifier(init=model, n_steps=2, unlabelled_weight=0.5)
    continued.fit(X, y)
    subject = Subject.of(continued, X, y, 2, False, 0)
    fresh = subject.task.fresh_model(subject)
    assert fresh.init == "kmeans"
    assert fresh.n_components == {0: 1, 1: 1, 2: 1}
    page = check(report(continued, X, y, cv=2, baselines=False).html)
    assert "starts from k-means instead" in page.text["quality"]


# Tables -------------------------------------------------------------------------------


def odd_tables():
    rng = np.random.default_rng(0)
    real = rng.normal(size=(40, 4))
    two = np.arange(40) % 2
    words = rng.choice(list("abc"), size=(40, 3)).astype(object)
    words[rng.random(words.shape) < 0.1] = None
    constant = real.copy()
    constant[:, 1] = 7.0
    scales = real * [1e-12, 1.0, 1e12, 1e300]
    wide = rng.normal(size=(40, 60))
    wide[rng.random(wide.shape) < 0.2] = np.nan
    empty = real.copy()
    empty[:, 2] = np.nan
    many = rng.normal(size=(70, 2))
    return {
        "one column": (real[:, :1], two, None),
        "categories": (words, two, None),
        "constant": (constant, two, None),
        "scales": (scales, two, None),
        "60 columns": (wide, two, None),
        "empty column": (empty, two, None),
        "30 classes": (many, np.append(np.arange(60) % 30, np.arange(10)), None),
        "rare classes": (
            real,
            np.append(two[:-3], [2, 3, 3]),
            "1 class with a single row",
        ),
        "one class": (real, np.zeros(40, int), "a single class"),
        "five rows": (real[:5], two[:5], "there are 5 labelled rows"),
        "a label each": (real[:12], np.arange(12), "two classes of two rows"),
    }


@pytest.mark.filterwarnings("ignore:No observed value:UserWarning")
@pytest.mark.parametrize("name", odd_tables())
def test_odd_tables(name):
    X, y, reason = odd_tables()[name]
    model = plain_classifier("likelihood", random_state=0).fit(X, y)
    # Boosting thirty classes takes longer than all the rest.
    page = check(report(model, X, y, cv=2, baselines=name != "30 classes").html)
    if reason:
        assert reason in page.text["quality"]
    # A table does without a row that has nothing.
    X = np.array(X, dtype=object if X.dtype == object else float)
    X[1] = None if X.dtype == object else np.nan
    check(report(model, X, cv=2).html)


def test_names_of_rows(fitted):
    model, X, y = fitted
    rows = np.arange(len(X))
    pairs = pd.MultiIndex.from_arrays([rows // 9, rows % 9])
    subject = Subject.of(model, X.set_axis(pairs), y, 2, False, 0)
    assert subject.row_name(10) == "(1, 1)"
    same = Subject.of(model, X.set_axis(np.zeros(len(X))), y, 2, False, 0)
    assert not same.has_index
    assert same.row_name(10) == "10"


def test_very_many_classes_have_no_table_of_all_pairs(monkeypatch, fitted):
    from hybridmix.reporting.sections import errors

    monkeypatch.setattr(errors, "_MAX_SHARES", 2)
    monkeypatch.setattr(errors, "_MAX_CONFUSED", 2)
    page = check(report(*fitted, cv=2, baselines=False).html)
    assert page.tables["errors"][0][0][1] == "mistaken for"


@pytest.mark.parametrize("y", [None, "unlabelled"])
def test_without_labels(fitted, y):
    model, X, labels = fitted
    y = None if y is None else np.full(len(labels), -1)
    page = check(report(model, X, y).html)
    for anchor in ("errors", "missing", "features"):
        assert "label" in page.text[anchor]
        assert anchor not in page.tables


def test_large_tables_are_sampled(fitted, monkeypatch):
    from hybridmix.reporting import findings, subject
    from hybridmix.reporting.sections import features, missing

    model, X, y = fitted
    monkeypatch.setattr(trials, "MAX_ROWS", 60)
    monkeypatch.setattr(subject, "MAX_SCORED", 50)
    monkeypatch.setattr(missing, "MAX_ROWS", 20)
    monkeypatch.setattr(findings, "MAX_JUDGING", 20)
    monkeypatch.setattr(features, "MAX_JUDGING", 20)
    page = check(report(model, X, y, cv=2, baselines=False).html)
    assert f"60 of {len(X)} rows took part" in page.text["quality"]
    assert f"50 of {len(X)} rows" in page.text["density"]
    assert "20 of 30 held-out rows" in page.text["missing"]
    assert "20 of 30 held-out rows" in page.text["features"]


def test_unseen_categories_are_mentioned_once():
    X = pd.DataFrame({"a": np.arange(20.0), "b": ["x", "y"] * 10})
    y = np.arange(20) % 4 < 2
    model = plain_classifier("likelihood", random_state=0).fit(X, y)
    X.loc[3, "b"] = "z"
    with pytest.warns(UserWarning, match="training did not see") as caught:
        page = check(report(model, X, y, cv=2).html)
    assert len(caught) == 1
    assert "5 %" in page.text["data"]


def test_a_class_with_few_rows_survives_sampling(fitted, monkeypatch):
    model, X, y = fitted
    monkeypatch.setattr(trials, "MAX_ROWS", 12)
    rare = np.where(np.arange(len(y)) == 5, 2, np.where(y == 2, 1, y))
    subject = Subject.of(model, X, rare, 2, False, 0)
    found = trials.cross_validated(subject.task, subject)
    assert found.n_used == 12
    assert [len(one.classes_) for one in found.ours.models] == [3, 3]


# Use ----------------------------------------------------------------------------------


def test_save_and_show(written, tmp_path):
    path = tmp_path / "report.html"
    path.write_text("old")
    written.save(path)
    assert path.read_text("utf-8") == written.html
    assert list(tmp_path.iterdir()) == [path]
    assert re.fullmatch(r"Report\(title='Wine', \d+ kB\)", repr(written))
    with pytest.raises(FileNotFoundError):
        written.save(tmp_path / "nowhere" / "report.html")


def test_progress_is_announced(fitted):
    steps = []
    with listening(steps.append):
        report(*fitted, cv=2)
    own = [step for step in steps if step.task == "report"]
    assert [step.done for step in own] == list(range(len(SECTIONS) + 1))
    assert {step.note for step in steps if step.task == "cross-validation"} >= {
        "this model",
        "boosted trees",
    }


def test_baselines_have_one_thread(fitted, monkeypatch):
    """More would wait for each other, above all where others work as well."""
    from sklearn.utils._openmp_helpers import _openmp_effective_n_threads

    found = []
    kept = baselines._boosted_trees

    def observed(*arguments):
        found.append(_openmp_effective_n_threads())
        return kept(*arguments)

    monkeypatch.setattr(baselines, "_boosted_trees", observed)
    with threadpool_limits(limits=2, user_api="openmp"):
        report(*fitted, cv=2)
    assert found == [1, 1]


def test_wrong_use(fitted):
    from sklearn.linear_model import LogisticRegression

    model, X, y = fitted
    with pytest.raises(TypeError, match="needs a fitted mixture of hybridmix"):
        report(LogisticRegression(), X, y)
    with pytest.raises(ValueError, match="cv=1 is not valid"):
        report(model, X, y, cv=1)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        report(model, X, y[:-1])
    with pytest.raises(ValueError, match="random_state=4294967295 is not valid"):
        report(model, X, y, random_state=2**32 - 1)
    density = MixtureDensity(
        n_components=1, covariance_type="full", covariance_prior=1.0
    ).fit(np.eye(3))
    with pytest.raises(TypeError, match="X is sparse"):
        report(density, csr_array(np.eye(3)))


def test_import_is_cheap():
    code = (
        "import sys, hybridmix.reporting\n"
        "heavy = ('sklearn.model_selection', 'sklearn.ensemble', 'matplotlib')\n"
        "assert not [name for name in heavy if name in sys.modules]"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# Regressors ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def prices():
    """A regressor and its table: holes, categories, and rows without a target."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(160, 4)), columns=["a", "b", "c", "<d>"])
    X["e"] = rng.choice(["yes", "no"], 160)
    y = 1e-4 * (X["a"] + 2.0 * X["b"] + (X["e"] == "yes") + rng.normal(size=160))
    X = X.mask(rng.random(X.shape) < 0.15)
    y = y.mask(rng.random(160) < 0.1)
    return plain_regressor(covariance_prior=1.0).fit(X, y), X, y


def test_report_on_a_regressor(prices):
    written = report(*prices, title="Prices", cv=2)
    page = check(written.html, OF_NUMBERS)
    assert "mean squared error" in page.text["reproduce"]
    scores = page.tables["quality"][0]
    assert scores[0][1:] == [
        "RMSE",
        "MAE",
        "R²",
        "coverage",
        "interval score",
        "log predictive density",
    ]
    # Small units keep their digits.
    assert float(scores[1][1].split(" ± ")[0]) == pytest.approx(1e-4, rel=0.5)
    by_holes = page.tables["predictions"][0]
    assert by_holes[0][0] == "cells missing"
    assert by_holes[1][0] == "none"
    n_scored = int(prices[2].notna().sum())
    assert sum(int(row[1]) for row in by_holes[1:]) <= n_scored
    assert f"{n_scored} of 160 rows have a target" in page.text["data"]
    features = page.tables["features"][0]
    assert features[1][0] == "b"
    assert "RMSE by the share of cells hidden" in page.text["missing"]
    assert "averaged over others" in page.text["training"]
    assert page.tables["density"][0][0][2] == "target"
    assert report(*prices, title="Prices", cv=2).html == written.html


def test_report_on_a_regressor_without_holes_or_targets(prices):
    model, X, y = prices
    complete = X.dropna()
    text = check(
        report(model, complete, y[complete.index], cv=2, baselines=False).html, OF_NUMBERS
    ).text["predictions"]
    assert "No cell of these rows is missing." in text
    page = check(report(model, X).html, OF_NUMBERS)
    assert "No targets were given" in page.text["predictions"]
    assert "No targets were given" in page.text["data"]


def test_intervals_of_many_points_are_thinned():
    x = np.arange(1000.0)
    picture = interval_chart(
        x, x, x - 1.0, x + 1.0, description="d", x_label="x", y_label="y"
    )
    assert picture.count("<circle") == 100 + 2
    assert "outside (0)" in picture
