"""Several tasks that share switches."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from model_files import assert_same
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, StratifiedKFold

from hybridmix import MEDMultiTaskClassifier, MEDMultiTaskRegressor, load, save
from hybridmix.med.constraints import TaskRows, TaskTargets
from hybridmix.med.models.switches import SwitchedColumns, TaskColumns

KINDS = (MEDMultiTaskClassifier, MEDMultiTaskRegressor)


def task_rows(seed=0, n_tasks=5, n=30, p=60, k=3, real=False):
    """Rows of tasks with weights of their own on the same k columns; tasks as text."""
    rng = np.random.default_rng(seed)
    columns = rng.permutation(p)[:k]
    weights = np.zeros((n_tasks, p))
    weights[:, columns] = 2.0 * rng.choice([-1, 1], (n_tasks, k))
    tasks = rng.permutation(np.repeat(np.arange(n_tasks), n))
    X = rng.normal(size=(n_tasks * n, p))
    f = np.sum(X * weights[tasks], axis=1) + 0.5 * rng.normal(size=len(X))
    names = np.array([f"site {t}" for t in range(n_tasks)])[tasks]
    return X, (f if real else np.where(f > 0, "up", "down")), names, columns


def fitted(kind, **options):
    X, y, task, _ = task_rows(real=kind is MEDMultiTaskRegressor)
    return kind(**options).fit(X, y, task=task)


# The model and its constraints ----------------------------------------------------------


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
def test_own_outputs_are_those_of_the_general_model(shared, layout):
    rng = np.random.default_rng(0)
    sizes = np.array([4, 7, 2])
    tasks = np.repeat(np.arange(3), sizes)
    X = rng.normal(size=(13, 5))
    asked = TaskRows(np.ones(13), tasks, 3)
    weights = asked.signed(rng.normal(size=13))
    own = TaskColumns(layout(X), sizes, 0.1, shared).tilted(weights)
    general = SwitchedColumns(X, 0.1, 3, shared).tilted(weights)
    assert own.log_partition == pytest.approx(general.log_partition)
    np.testing.assert_allclose(asked.margins(own.outputs), asked.margins(general.outputs))
    for mine, theirs in zip(own.posterior, general.posterior, strict=True):
        np.testing.assert_allclose(mine, theirs, atol=1e-14)


def test_sides_of_targets_are_those_of_the_task():
    rng = np.random.default_rng(0)
    tasks, targets = rng.integers(3, size=8), rng.normal(size=8)
    asked = TaskTargets(targets, tasks, 3, np.arange(1.0, 9.0))
    outputs, multipliers = rng.normal(size=(3, 8)), rng.random(16)
    own = outputs[tasks, np.arange(8)]
    np.testing.assert_array_equal(asked.margins(outputs), np.r_[own, -own])
    np.testing.assert_array_equal(asked.offsets, np.r_[targets, -targets])
    np.testing.assert_array_equal(asked.weights, np.tile(np.arange(1.0, 9.0), 2))
    inner = np.sum(asked.signed(multipliers) * outputs)
    assert inner == pytest.approx(multipliers @ asked.margins(outputs))


# Estimators -----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_tasks_find_their_columns_together(kind):
    real = kind is MEDMultiTaskRegressor
    X, y, task, columns = task_rows(n=200, real=real)
    seen = np.zeros(len(X), dtype=bool)
    for name in np.unique(task):
        seen[np.flatnonzero(task == name)[:20]] = True
    scores = {}
    for shared in (True, False):
        model = kind(shared=shared).fit(X[seen], y[seen], task=task[seen])
        scores[shared] = model.score(X[~seen], y[~seen], task=task[~seen])
        assert model.inclusion_.shape == ((60,) if shared else (5, 60))
        assert model.scores_.shape == model.inclusion_.shape
        assert model.coef_.shape == (5, 60)
        assert model.intercept_.shape == (5,)
        if shared:
            assert set(np.argsort(-model.inclusion_)[:3]) == set(columns)
    assert scores[True] > scores[False] + 0.05


@pytest.mark.parametrize("kind", KINDS)
def test_switches_of_their_own_are_tasks_apart(kind):
    X, y, task, _ = task_rows(real=kind is MEDMultiTaskRegressor)
    options = {"shared": False, "standardise": False, "C": 0.3, "tol": 1e-8}
    together = kind(**options).fit(X, y, task=task)
    for number, name in enumerate(together.tasks_):
        own = task == name
        alone = kind(**options).fit(X[own], y[own])
        np.testing.assert_allclose(alone.coef_[0], together.coef_[number], atol=1e-3)
        np.testing.assert_allclose(
            alone.intercept_[0], together.intercept_[number], atol=1e-3
        )


def test_outputs_decide_about_labels():
    X, y, task, _ = task_rows()
    model = MEDMultiTaskClassifier().fit(X, y, task=task)
    np.testing.assert_array_equal(model.tasks_, [f"site {t}" for t in range(5)])
    np.testing.assert_array_equal(model.classes_, ["down", "up"])
    outputs = model.decision_function(X, task=task)
    row = 17
    number = list(model.tasks_).index(task[row])
    own = X[row] @ model.coef_[number] + model.intercept_[number]
    assert outputs[row] == pytest.approx(own)
    np.testing.assert_array_equal(model.predict(X, task=task) == "up", outputs > 0)
    assert model.score(X, y, task=task) == np.mean(model.predict(X, task=task) == y)


@pytest.mark.parametrize("kind", KINDS)
def test_the_order_of_rows_does_not_matter(kind):
    X, y, task, _ = task_rows(real=kind is MEDMultiTaskRegressor)
    order = np.random.default_rng(1).permutation(len(X))
    one = kind(tol=1e-8).fit(X, y, task=task)
    other = kind(tol=1e-8).fit(X[order], y[order], task=task[order])
    np.testing.assert_allclose(one.coef_, other.coef_, atol=1e-3)


@pytest.mark.parametrize("kind", KINDS)
def test_a_weight_of_two_is_two_rows(kind):
    X, y, task, _ = task_rows(n=20, real=kind is MEDMultiTaskRegressor)
    weights = np.arange(len(X)) % 3
    one = kind(tol=1e-8).fit(X, y, sample_weight=weights, task=task)
    repeated = (np.repeat(part, weights, 0) for part in (X, y, task))
    X, y, task = repeated
    other = kind(tol=1e-8).fit(X, y, task=task)
    np.testing.assert_allclose(one.coef_, other.coef_, atol=1e-3)
    np.testing.assert_allclose(one.intercept_, other.intercept_, atol=1e-3)


@pytest.mark.parametrize("kind", KINDS)
def test_sparse_rows_give_the_same(kind):
    X, y, task, _ = task_rows(real=kind is MEDMultiTaskRegressor)
    X = np.where(np.abs(X) > 0.7, X, 0.0)
    dense = kind(tol=1e-8).fit(X, y, task=task)
    thin = kind(tol=1e-8).fit(sparse.csr_array(X), y, task=task)
    np.testing.assert_allclose(thin.coef_, dense.coef_, atol=2e-3)
    outputs = thin._own_outputs(sparse.csr_array(X), task)
    np.testing.assert_allclose(outputs, thin._own_outputs(X, task))


def test_tasks_may_have_units_of_their_own():
    X, y, task, _ = task_rows(real=True)
    is_first = task == "site 0"
    one = MEDMultiTaskRegressor(tol=1e-8).fit(X, y, task=task)
    other_units = np.where(is_first, 1000.0 * y + 5.0, y)
    other = MEDMultiTaskRegressor(tol=1e-8).fit(X, other_units, task=task)
    np.testing.assert_allclose(other.scores_, one.scores_, atol=1e-3)
    np.testing.assert_allclose(other.coef_[0], 1000.0 * one.coef_[0], atol=1.0)
    np.testing.assert_allclose(other.coef_[1:], one.coef_[1:], atol=1e-3)
    shifted = X + np.where(is_first, 100.0, 0.0)[:, None]
    moved = MEDMultiTaskRegressor(tol=1e-8).fit(shifted, y, task=task)
    np.testing.assert_allclose(moved.coef_, one.coef_, atol=1e-3)


@pytest.mark.parametrize("kind", KINDS)
def test_without_tasks_there_is_one(kind):
    X, y, *_ = task_rows(n_tasks=1, real=kind is MEDMultiTaskRegressor)
    model = kind().fit(X, y)
    np.testing.assert_array_equal(model.tasks_, [0])
    assert model.coef_.shape == (1, 60)
    np.testing.assert_array_equal(
        model.predict(X), model.predict(X, task=np.zeros(len(X), dtype=int))
    )


# Tasks as a column ----------------------------------------------------------------------


@pytest.mark.parametrize("container", [pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize("column", ["site", 1])
def test_tasks_as_a_column_of_a_frame(container, column):
    X, y, task, _ = task_rows(p=4)
    names = ["a", "b", "c", "d"]
    cells = dict(zip(names, X.T, strict=True))
    frame = container({"a": X[:, 0], "site": task, **cells})
    model = MEDMultiTaskClassifier(task_column=column).fit(frame, y)
    np.testing.assert_array_equal(model.feature_names_in_, names)
    assert model.n_features_in_ == 4
    plain = MEDMultiTaskClassifier().fit(container(cells), y, task=task)
    np.testing.assert_array_equal(model.coef_, plain.coef_)
    np.testing.assert_array_equal(
        model.predict(frame), plain.predict(container(cells), task=task)
    )


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array, np.ndarray.tolist])
def test_tasks_as_a_column_of_numbers(layout):
    X, y, task, _ = task_rows(p=4)
    numbers = np.unique(task, return_inverse=True)[1]
    table = layout(np.column_stack([X, numbers]))
    model = MEDMultiTaskClassifier(task_column=-1).fit(table, y)
    np.testing.assert_array_equal(model.tasks_, range(5))
    plain = MEDMultiTaskClassifier().fit(layout(X), y, task=numbers)
    np.testing.assert_allclose(model.coef_, plain.coef_)
    assert model.score(table, y) == plain.score(layout(X), y, task=numbers)


def test_columns_of_tasks_that_are_not_there():
    X, y, task, _ = task_rows(p=4)
    with pytest.raises(ValueError, match="no column 'site', which task_column names"):
        MEDMultiTaskClassifier(task_column="site").fit(pd.DataFrame({"a": X[:, 0]}), y)
    with pytest.raises(ValueError, match="is a name, but X has none"):
        MEDMultiTaskClassifier(task_column="site").fit(X, y)
    with pytest.raises(ValueError, match=r"task_column=4 is not a column .*\(150, 4\)"):
        MEDMultiTaskClassifier(task_column=4).fit(X, y)
    with pytest.raises(ValueError, match="task_column=9 is not a column"):
        MEDMultiTaskClassifier(task_column=9).fit(pd.DataFrame(X), y)
    with pytest.raises(ValueError, match="task is given twice"):
        MEDMultiTaskClassifier(task_column=0).fit(X, y, task=task)
    with pytest.raises(ValueError, match="task_column"):
        MEDMultiTaskClassifier(task_column=1.5).fit(X, y)


# Routing --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_tasks_are_routed_by_searches(kind):
    X, y, task, _ = task_rows(real=kind is MEDMultiTaskRegressor)
    with sklearn.config_context(enable_metadata_routing=True):
        model = kind().set_fit_request(task=True).set_score_request(task=True)
        search = GridSearchCV(model, {"inclusion": [1e-3, 0.1]}, cv=3)
        search.fit(X, y, task=task)
        assert search.score(X, y, task=task) > 0.7
    assert len(search.cv_results_["params"]) == 2


def test_tasks_as_a_column_need_no_routing():
    X, y, task, _ = task_rows()
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(60)]).assign(site=task)
    model = MEDMultiTaskClassifier(task_column="site")
    folds = list(StratifiedKFold(3).split(X, task))
    search = GridSearchCV(model, {"inclusion": [1e-3, 0.1]}, cv=folds).fit(frame, y)
    assert search.best_score_ > 0.7


# Files and errors -----------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_save_and_load(tmp_path, kind):
    model = fitted(kind, shared=False)
    save(model, tmp_path / "tasks.hmx")
    again = load(tmp_path / "tasks.hmx")
    assert_same(again, model)
    broken = clone(model)
    broken.__dict__ = {**vars(model), "tasks_": model.tasks_[1:]}
    with pytest.raises(ValueError, match="tasks_ has other tasks"):
        broken.check_consistent()


def test_unknown_tasks_are_named():
    X, _, task, _ = task_rows()
    model = fitted(MEDMultiTaskClassifier)
    with pytest.raises(ValueError, match=r"task 'site 9' of row 2 is none of .*'site 0'"):
        model.predict(X[:3], task=["site 1", "site 0", "site 9"])
    with pytest.raises(ValueError, match=r"task is missing: .* 5 tasks \('site 0'"):
        model.predict(X)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.predict(X, task=task[1:])
    with pytest.raises(ValueError, match="Row 1 has no task"):
        model.predict(X[:2], task=["site 1", None])


def test_tasks_that_make_no_sense():
    X, y, task, _ = task_rows()
    one_class = np.where(task == "site 3", "up", y)
    with pytest.raises(ValueError, match="rows of task 'site 3' have only one class"):
        MEDMultiTaskClassifier().fit(X, one_class, task=task)
    weights = (task != "site 2").astype(float)
    with pytest.raises(ValueError, match="task 'site 2' has no row of positive weight"):
        MEDMultiTaskClassifier().fit(X, y, sample_weight=weights, task=task)
    mixed = np.array([1, *task[1:]], dtype=object)
    with pytest.raises(TypeError, match="mixes text and other values"):
        MEDMultiTaskClassifier().fit(X, y, task=mixed)
    with pytest.raises(ValueError, match="y has 3 classes"):
        MEDMultiTaskClassifier().fit(X, np.arange(len(X)) % 3, task=task)
    with pytest.raises(ValueError, match="shared"):
        MEDMultiTaskClassifier(shared="some").fit(X, y, task=task)


def test_a_task_of_a_single_row_has_a_bias():
    X, y, task, _ = task_rows(real=True)
    task = np.r_[["alone"], task[1:]]
    model = MEDMultiTaskRegressor().fit(X, y, task=task)
    assert model.predict(X[:1], task=["alone"])[0] == pytest.approx(y[0], abs=0.5)
