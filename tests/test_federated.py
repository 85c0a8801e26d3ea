"""Training on several sites is training on one table."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from hybridmix import (
    HybridMixtureClassifier,
    MixtureDensity,
    MixtureImputer,
    load,
    save,
)
from hybridmix._parallel import Workers
from hybridmix.data import Dataset
from hybridmix.federated import (
    ColumnSummary,
    Summary,
    combine,
    combine_schemas,
    load_summary,
    resume,
    save_summary,
    shared,
    step,
    summarise,
    summarise_columns,
    train,
)
from hybridmix.federated.summaries import objective_of
from hybridmix.io import ModelFileError
from hybridmix.problem import Problem


def table(n_rows=900, seed=0):
    """A mixed table with holes, and labels of which some are missing."""
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=n_rows)
    X = 2.0 * y[:, None] * [1.0, 0.0, -1.0] + rng.normal(size=(n_rows, 3))
    X[rng.random(X.shape) < 0.1] = np.nan
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    words = np.array(["low", "middle", "high"], dtype=object)
    frame["level"] = words[(y + (rng.random(n_rows) < 0.3)) % 3]
    return frame, np.where(rng.random(n_rows) < 0.2, -1, y)


# Sites of different sizes; the second lacks a class and a category.
def sites():
    frame, y = table()
    second = np.flatnonzero((y != 2) & (frame["level"] != "low").to_numpy())[:150]
    first = np.setdiff1d(np.arange(len(frame)), second)
    parts = [(frame.iloc[index], y[index]) for index in (first, second)]
    order = np.r_[first, second]
    return parts, (frame.iloc[order], y[order])


def agreed_schema(parts):
    return combine_schemas([summarise_columns(X) for X, _ in parts])


def density(kind="full"):
    return MixtureDensity(2, covariance_type=kind, random_state=0, tol=1e-6)


def classifier(**options):
    return HybridMixtureClassifier(
        "likelihood", n_components=2, covariance_type="full", random_state=0, **options
    )


def started(model, parts):
    X, y = parts[0]
    schema = agreed_schema(parts)
    if isinstance(model, MixtureDensity):
        return shared(model.partial_fit(X, schema=schema))
    return shared(model.partial_fit(X, y, classes=[0, 1, 2], schema=schema))


def callbacks(parts):
    def of(X, y):
        return lambda model: summarise(model, X, y)

    return [of(X, y) for X, y in parts]


def whole_problem(model, X, y):
    labels = y if hasattr(model, "classes_") else np.zeros(len(X), np.intp)
    dataset = Dataset.arrange(model._encode(X), labels)
    return Problem(dataset, objective_of(model), model.model_, Workers(1))


def assert_same(found, wanted, rtol=1e-10):
    np.testing.assert_allclose(found.means_, wanted.means_, rtol=rtol, atol=rtol)
    np.testing.assert_allclose(found.mixing_, wanted.mixing_, rtol=rtol)
    np.testing.assert_allclose(
        found.covariances_, wanted.covariances_, rtol=rtol, atol=rtol
    )


def test_schemas_are_those_of_all_rows():
    parts, (X, _) = sites()
    found = agreed_schema(parts)
    fitted = MixtureDensity(1, covariance_type="diag", column_shapes="plain").fit(X)
    wanted = fitted.schema_
    assert (found.names, found.real, found.categories) == (
        wanted.names,
        wanted.real,
        wanted.categories,
    )
    np.testing.assert_allclose(found.centre, wanted.centre, rtol=1e-12)
    np.testing.assert_allclose(found.scale, wanted.scale, rtol=1e-12)


@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
def test_em_is_that_of_one_table(kind):
    parts, (X, y) = sites()
    start = started(density(kind), parts)
    model = start
    plain = start.model_
    problem = whole_problem(start, X, y)
    for _ in range(10):
        model = step(model, combine([site(model) for site in callbacks(parts)]))
        plain = plain.maximised(problem.assess(plain).statistics)
    wanted = start._derived_attributes(plain, start.schema_)
    np.testing.assert_allclose(model.means_, wanted["means_"], rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(model.covariances_, wanted["covariances_"], rtol=1e-9)
    np.testing.assert_allclose(model.mixing_, wanted["mixing_"], rtol=1e-10)


def test_training_by_callbacks_is_that_of_one_site():
    parts, whole = sites()
    start = started(density(), parts)
    found = train(start, callbacks(parts))
    wanted = train(start, callbacks([whole]))
    assert found.converged_
    assert found.n_iter_ == wanted.n_iter_
    assert_same(found, wanted)
    assert found.score(whole[0]) > start.score(whole[0])
    prior = found.model_.log_prior_density() / len(whole[0])
    assert found.trace_[-1] == pytest.approx(found.score(whole[0]) + prior)


def test_other_solvers_and_covariances():
    parts, whole = sites()
    start = started(classifier(), parts)
    options = {"objective": "conditional", "solver": "baum-welch", "n_steps": 3}
    found, wanted = (
        train(start.set_params(**options), callbacks(own)) for own in (parts, [whole])
    )
    assert_same(found, wanted, 1e-8)
    subspace = started(density("subspace").set_params(n_factors=2), parts)
    found, wanted = (train(subspace, callbacks(own)) for own in (parts, [whole]))
    np.testing.assert_allclose(found.means_, wanted.means_, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("objective", ["likelihood", "hybrid", "conditional", "margin"])
def test_classifiers_are_those_of_one_table(objective):
    parts, (X, y) = sites()
    start = started(classifier(), parts)
    start = start.set_params(
        objective=objective, tradeoff=5.0, n_steps=4, unlabelled_weight=0.5
    )
    total = combine([site(start) for site in callbacks(parts)])
    wanted = whole_problem(start, X, y).assess(start.model_)
    np.testing.assert_allclose(total.parts, wanted.parts, rtol=1e-10)
    np.testing.assert_allclose(total.by_class, wanted.by_class, rtol=1e-10)
    np.testing.assert_allclose(
        total.statistics.counts, wanted.statistics.counts, rtol=1e-9, atol=1e-9
    )
    assert total.wrong == pytest.approx(wanted.wrong)
    found = train(start.set_params(max_iter=500), callbacks(parts))
    again = train(start, callbacks([(X, y)]))
    assert_same(found, again, 1e-6)
    assert found.trace_[-1] > found.trace_[0]
    known = y >= 0
    assert found.score(X[known], y[known]) > 0.8


def test_everything_goes_by_file(tmp_path):
    parts, _ = sites()
    for number, (X, _) in enumerate(parts):
        save_summary(summarise_columns(X), tmp_path / f"columns{number}")
    columns = [load_summary(tmp_path / f"columns{number}") for number in range(2)]
    assert all(isinstance(one, ColumnSummary) for one in columns)
    save_summary(combine_schemas(columns), tmp_path / "schema")
    schema = load_summary(tmp_path / "schema")
    model = shared(density().partial_fit(parts[0][0], schema=schema))
    save(model, tmp_path / "model")
    for number, (X, _) in enumerate(parts):
        save_summary(summarise(load(tmp_path / "model"), X), tmp_path / f"site{number}")
    found = [load_summary(tmp_path / f"site{number}") for number in range(2)]
    assert all(isinstance(one, Summary) for one in found)
    by_file = step(load(tmp_path / "model"), combine(found))
    direct = step(model, combine([site(model) for site in callbacks(parts)]))
    assert_same(by_file, direct, 1e-15)
    save(by_file, tmp_path / "model")
    assert load(tmp_path / "model").score(parts[0][0]) == by_file.score(parts[0][0])


@pytest.mark.parametrize("objective", ["likelihood", "hybrid"])
def test_training_goes_on_by_file(tmp_path, objective):
    parts, _ = sites()
    start = started(classifier(tol=1e-2), parts)
    start.set_params(objective=objective, tradeoff=5.0, n_steps=4)
    save(start, tmp_path / "start")
    totals = []
    while True:
        summaries = [load_summary(path) for path in totals]
        asked, finished = resume(load(tmp_path / "start"), summaries)
        if finished:
            break
        save(asked, tmp_path / "asked")
        found = [summarise(load(tmp_path / "asked"), X, y) for X, y in parts]
        totals.append(tmp_path / f"total{len(totals)}")
        save_summary(combine(found), totals[-1])
    wanted = train(start, callbacks(parts))
    assert_same(asked, wanted, 1e-15)
    np.testing.assert_array_equal(asked.trace_, wanted.trace_)


def test_results_are_ordinary_models():
    parts, (X, y) = sites()
    model = train(started(classifier(), parts), callbacks(parts))
    model.check_consistent()
    assert not model.impute(X).isna().any().any()
    assert clone(model).fit(X, y).n_features_in_ == 4


def test_shared_models_know_nothing_of_single_rows():
    parts, _ = sites()
    own = density().partial_fit(parts[0][0], schema=agreed_schema(parts))
    sent = shared(own)
    assert not hasattr(sent, "fingerprint_")
    assert not hasattr(sent, "stream_")
    assert hasattr(own, "fingerprint_")
    np.testing.assert_array_equal(sent.means_, own.means_)


def test_weights_are_rows():
    parts, _ = sites()
    X, _ = parts[0]
    model = started(density(), parts)
    weights = np.random.default_rng(0).integers(0, 3, len(X))
    weighted = summarise(model, X, sample_weight=weights)
    repeated = summarise(model, X.loc[X.index.repeat(weights)])
    assert weighted.total_weight == repeated.total_weight
    np.testing.assert_allclose(
        weighted.statistics.counts, repeated.statistics.counts, rtol=1e-10
    )


# Refusals -------------------------------------------------------------------------------


def test_sites_must_have_the_same_columns():
    (X, _), (other, _) = sites()[0]
    renamed = other.rename(columns={"a": "z"})
    with pytest.raises(ValueError, match=r"different columns: 'a', .* 'z'"):
        combine_schemas([summarise_columns(X), summarise_columns(renamed)])
    text = other.assign(b="x")
    with pytest.raises(ValueError, match="'b' is real at one site and categorical"):
        combine_schemas([summarise_columns(X), summarise_columns(text)])
    with pytest.raises(ValueError, match="at least one site"):
        combine_schemas([])


def test_summaries_must_be_those_of_the_model():
    parts, _ = sites()
    start = started(density(), parts)
    first, second = (site(start) for site in callbacks(parts))
    following = step(start, combine([first, second]))
    with pytest.raises(ValueError, match="different models"):
        combine([first, summarise(following, parts[1][0])])
    with pytest.raises(ValueError, match="that of another model"):
        step(following, first)
    with pytest.raises(ValueError, match="at least one site"):
        combine([])


def test_what_cannot_be_federated(tmp_path):
    parts, (X, y) = sites()
    imputer = MixtureImputer(1, random_state=0).fit(X)
    with pytest.raises(TypeError, match="MixtureImputer cannot be trained by sums"):
        summarise(imputer, X)
    hybrid = started(classifier(), parts).set_params(objective="hybrid")
    with pytest.raises(ValueError, match="use train"):
        step(hybrid, summarise(hybrid, X, y))
    with pytest.raises(TypeError, match=r"hybridmix\.save for models"):
        save_summary(hybrid, tmp_path / "file")
    save(hybrid, tmp_path / "model")
    with pytest.raises(ModelFileError, match="instead of a Summary"):
        load_summary(tmp_path / "model")


def test_damaged_summaries_are_refused(tmp_path):
    parts, _ = sites()
    found = summarise(started(density(), parts), parts[0][0])
    for changed in (
        replace(found, total_weight=np.nan),
        replace(found, by_class=found.by_class[:1]),
        replace(found, statistics=None),
    ):
        with pytest.raises(ValueError, match="do not fit together"):
            save_summary(changed, tmp_path / "file")
    columns = summarise_columns(parts[0][0])
    with pytest.raises(ValueError, match="columns are not numbered"):
        save_summary(replace(columns, real=(0, 1)), tmp_path / "file")
    moments = replace(columns.moments, squares=-columns.moments.squares)
    with pytest.raises(ValueError, match="squares has values that no column has"):
        save_summary(replace(columns, moments=moments), tmp_path / "file")


def test_collapsed_components_need_rows():
    rng = np.random.default_rng(0)
    X = np.r_[rng.normal(-5.0, 1.0, 100), rng.normal(5.0, 1.0, 100)][:, None]
    model = MixtureDensity(
        2, covariance_type="diag", covariance_prior=0.0, random_state=0
    ).partial_fit(X, schema=combine_schemas([summarise_columns(X)]))
    X[:100] = -5.0
    with pytest.raises(ValueError, match="A component has collapsed"):
        train(model, [lambda own: summarise(own, X)])


def test_what_sites_return_is_checked():
    parts, _ = sites()
    start = started(density(), parts)
    [site, _] = callbacks(parts)
    found = site(start)
    stale = step(start, found)
    negative = replace(
        found.statistics,
        counts=-found.statistics.counts,
        positive=found.statistics.positive,
    )
    for answer, message in (
        (site(stale), "that of another model"),
        (replace(found, parts=np.zeros(2)), "that of another objective"),
        (
            replace(found, class_weights=np.zeros(2), by_class=np.zeros(3)),
            "other classes",
        ),
        (replace(found, parts=np.array([np.nan])), "not finite"),
        (
            replace(found, class_weights=-found.class_weights),
            "class_weights are negative",
        ),
        (replace(found, total_weight=0.0), "not positive"),
        (replace(found, statistics=negative), "negative weight of rows"),
    ):
        with pytest.raises(ValueError, match=message):
            train(start, [lambda _, answer=answer: answer])
        with pytest.raises(ValueError, match=message):
            step(start, answer)
    for call in (
        lambda: train(start, [lambda _: None]),
        lambda: combine([None]),
        lambda: step(start, None),
        lambda: resume(start, [None]),
    ):
        with pytest.raises(TypeError, match=r"what summarise returns .* got NoneType"):
            call()
    with pytest.raises(TypeError, match="what summarise_columns returns, got DataFrame"):
        combine_schemas([parts[0][0]])


def test_summaries_of_different_objectives_are_not_combined():
    parts, _ = sites()
    start = started(classifier(), parts)
    hybrid = clone(start).set_params(objective="hybrid", tradeoff=1.0)
    hybrid.__dict__ |= {k: v for k, v in vars(start).items() if k.endswith("_")}
    X, y = parts[0]
    with pytest.raises(ValueError, match="with the same options"):
        combine([summarise(start, X, y), summarise(hybrid, X, y)])


def test_tables_that_cannot_be_summarised_are_refused(tmp_path):
    parts, _ = sites()
    X, _ = parts[0]
    with pytest.raises(ValueError, match="0 sample"):
        summarise_columns(X[:0])
    with pytest.raises(TypeError, match="a summary of every block"):
        summarise_columns(tmp_path)
    with pytest.raises(TypeError, match="a summary of every block"):
        summarise(started(density(), parts), tmp_path)
    with pytest.raises(ValueError, match="requires y"):
        summarise(started(classifier(), parts), X)
