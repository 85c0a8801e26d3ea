"""Run all benchmarks, one after the other."""

from __future__ import annotations

import argparse
import importlib.util
import subprocess
import sys
import time
from collections.abc import Sequence

from common import HERE, add_options, version

SCRIPTS = [
    "engine",
    "em",
    "em_missing",
    "kernels",
    "single_precision",
    "holes_speed",
    "med_kernels",
    "med_generative",
    "em_acceleration",
    "streams",
    "subspace_cost",
    "scaling",
    "out_of_core",
    "dask_faults",
    "dask_scaling",
    "one_model",
    "imputation",
    "outliers",
    "defaults",
    "regression",
    "med_regression",
    "med_outliers",
    "targets",
    "networks",
    "network_start",
    "med_selection",
    "med_tasks",
    "latent_med",
    "sequences_accuracy",
    "sequences_filling",
    "sequences_speed",
    "roth",
    "roth_time",
    "roth_curves",
    "pernkopf",
    "missing_features",
    "few_labels",
    "pixels",
    "occlusion",
    "high_dimensional",
    "search_cost",
    "med_linear",
    "torch_speed",
    "onnx_export",
    "shapley",
    "command_line",
    "explore",
]
RIVALS = {
    "pomegranate": "pomegranate",
    "gmmx": "gmmx",
    "stepmix": "stepmix",
    "pyod": "pyod",
    "torch": "torch",
    "hmmlearn": "hmmlearn",
    "aeon": "aeon",
    "dynamax": "dynamax",
    "shap": "shap",
}
DATA_FILES = [
    "boston.npz",
    "colon.npz",
    "glass.npz",
    "golub.npz",
    "indian_pines.npz",
    "isolet_1_5.npz",
    "mnist.npz",
    "segmentation.npz",
    "sonar.npz",
    "phoneme_elena.npz",
    "phoneme_esl.npz",
    "ailerons.npz",
    "usps_11000.npz",
    "usps_7291.npz",
    "adult_test.csv.gz",
    "adult_train.csv.gz",
    "breast_cancer_wisconsin_original.csv.gz",
    "crabs.csv.gz",
    "dermatology.csv.gz",
    "mushroom.csv.gz",
    "splice.csv.gz",
]


def report_what_is_missing(parsed: argparse.Namespace) -> None:
    missing = [name for name in DATA_FILES if not (parsed.data / name).is_file()]
    if missing:
        print(f"Data files missing in {parsed.data}: {', '.join(missing)}")
        print("Tables that need them are left out; give their folder by --data.")
    else:
        print("All data files are there.")
    absent = [
        name for name, mod in RIVALS.items() if importlib.util.find_spec(mod) is None
    ]
    present = [f"{name} {version(name)}" for name in RIVALS if name not in absent]
    print(f"Rivals: {', '.join(present) or 'none but scikit-learn'}")
    if absent:
        print(f"Rivals not installed, and left out: {', '.join(absent)}")
    print(flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    add_options(parser)
    parser.add_argument("--only", nargs="+", choices=SCRIPTS, default=SCRIPTS)
    parsed = parser.parse_args(arguments)
    report_what_is_missing(parsed)
    passed = ["--data", str(parsed.data)]
    passed += ["--results", str(parsed.results)] if parsed.results else []
    passed += ["--quick"] if parsed.quick else []
    failed = []
    for name in parsed.only:
        print(f"== {name} ==", flush=True)
        start = time.perf_counter()
        command = [sys.executable, str(HERE / f"{name}.py"), *passed]
        if subprocess.run(command, check=False).returncode != 0:
            failed.append(name)
        print(f"({name}: {time.perf_counter() - start:.0f} s)\n", flush=True)
    if failed:
        sys.exit(f"Failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
