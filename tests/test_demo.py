"""The demonstration does what it says."""

import numpy as np
import pandas as pd
import pytest

import hybridmix
from hybridmix.cli import demo, demo_numbers, main


@pytest.fixture(scope="module")
def split():
    return demo.make_split(0)


def test_the_table_is_as_described(split):
    assert len(split.labelled[1]) == demo.N_LABELLED
    for table in (split.train, split.test, split.mixed_up):
        assert table.isna().to_numpy().mean() == pytest.approx(demo.MISSING, abs=0.05)
        assert table[demo.WORDS].dtype == object
    assert not split.whole.isna().to_numpy().any()
    # Only the rows that stand together change, not the values.
    assert set(split.mixed_up[demo.WORDS].dropna()) <= {"fine", "medium", "coarse"}


def test_the_one_model_beats_what_it_is_compared_with(split):
    for task in (demo.find_outliers, demo.fill_holes):
        (_, ours), *rivals = task(split).items()
        sign = -1 if task is demo.fill_holes else 1
        assert all(sign * ours[0] > sign * rival[0] for _, rival in rivals)


def test_files_and_text(tmp_path, capsys):
    assert main(["demo", "--quick", "--folder", str(tmp_path / "demo")]) == 0
    printed = capsys.readouterr().out
    assert max(map(len, printed.splitlines())) <= 96 + len(str(tmp_path))
    for name in ("HybridMixtureClassifier()", "boosted trees", "RBF SVM", "generative"):
        assert name in printed
    for name in ("report.html", "regression_report.html"):
        report = tmp_path / "demo" / name
        assert str(report) in printed
        assert "</html>" in report.read_text(encoding="utf-8")
    test = pd.read_csv(tmp_path / "demo" / "new_tumours.csv").drop(columns=demo.TARGET)
    filled = pd.read_csv(tmp_path / "demo" / "filled.csv")
    assert not filled.isna().to_numpy().any()
    pd.testing.assert_frame_equal(filled.where(test.notna()), test, check_dtype=False)
    model = hybridmix.load(tmp_path / "demo" / "model.hmx")
    assert np.isfinite(model.score_samples(test)).all()
    assert (
        main(
            [
                "evaluate",
                *(str(tmp_path / "demo" / n) for n in ("model.hmx", "new_tumours.csv")),
            ]
        )
        == 0
    )


def test_numbers_are_predicted_with_intervals():
    patients = demo_numbers.Patients.drawn()
    assert patients.y_train.isna().mean() == pytest.approx(0.2, abs=0.07)
    assert patients.train.isna().to_numpy().mean() == pytest.approx(0.3, abs=0.03)
    _, scores = demo_numbers.compare(patients)
    (_, ours), *rivals = scores.items()
    assert all(ours[0] < rival[0] for _, rival in rivals)
    # 177 rows: four standard errors.
    assert 0.81 < ours[1] < 0.99
