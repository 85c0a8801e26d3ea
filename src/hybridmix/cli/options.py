"""Arguments and options of the commands, in the order in which help shows them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from hybridmix.cli.choices import METHODS
from hybridmix.cli.labels import TASKS
from hybridmix.training.covariances import COVARIANCE_TYPES
from hybridmix.training.discriminative import OBJECTIVES
from hybridmix.training.topologies import TOPOLOGIES

_COLUMNS = "Columns"
_MODEL = "Model"


def _one_of(words: Iterable[str], help_text: str, panel: str | None = _MODEL) -> Any:
    """Return an option that is one of a few words."""
    known = list(words)

    def checked(text: str) -> str:
        if text not in known:
            raise typer.BadParameter(f"{text!r} is not one of {', '.join(known)}.")
        return text

    def completed(incomplete: str) -> list[str]:
        return [word for word in known if word.startswith(incomplete)]

    return typer.Option(
        help=help_text,
        metavar="|".join(known),
        parser=checked,
        autocompletion=completed,
        rich_help_panel=panel,
    )


TablePath = Annotated[
    Path,
    typer.Argument(
        metavar="TABLE",
        help="A .csv, .tsv (also .gz), .parquet or .feather file, a folder of them, or - "
        "for stdin.",
    ),
]
ModelPath = Annotated[
    Path, typer.Argument(metavar="MODEL", help="A model file written by fit.")
]
TableOrBoth = Annotated[
    list[Path],
    typer.Argument(
        metavar="[MODEL] TABLE",
        help="A table, and before it the model to use instead of one fitted to the table "
        "itself.",
    ),
]
GivenModel = Annotated[
    Path | None,
    typer.Option("--model", "-m", help="Another way to name the model."),
]
ModelOutput = Annotated[
    Path, typer.Option("--output", "-o", help="The model file to write.")
]
TableOutput = Annotated[
    Path,
    typer.Option(
        "--output",
        "-o",
        help="The table to write; its suffix names the format, - is CSV on stdout.",
    ),
]
OptionalOutput = Annotated[
    Path | None,
    typer.Option("--output", "-o", help="Also write the table, with scores and flags."),
]
PageOutput = Annotated[
    Path, typer.Option("--output", "-o", help="The HTML file to write.")
]
Target = Annotated[
    str | None,
    typer.Option(
        "--target",
        "-t",
        help="Column of the labels or numbers to predict; cells may be empty.",
        metavar="NAME",
    ),
]
TestTarget = Annotated[
    str | None,
    typer.Option(
        "--target",
        "-t",
        help="Column of the labels or targets, if not the one used in training; of "
        "several targets, A,B.",
        metavar="NAME",
    ),
]
KeptOut = Annotated[
    str | None,
    typer.Option(
        "--target",
        "-t",
        help="Column of the labels: it is neither learned from nor changed.",
        metavar="NAME",
    ),
]
TaskName = Annotated[
    str | None,
    _one_of(
        TASKS,
        "Whether the target has classes or is a number; by default, decided by how many "
        "different numbers it holds.",
        panel=None,
    ),
]
Unlabelled = Annotated[
    str | None,
    typer.Option(
        help="Label that means no label, such as -1, in addition to missing cells.",
        metavar="TEXT",
    ),
]
Weight = Annotated[
    str | None, typer.Option(help="Column of the row weights.", metavar="NAME")
]
SequenceNames = Annotated[
    list[str] | None,
    typer.Option(
        "--sequence",
        help="Rows are frames of sequences, and this column names the sequence of each; "
        "several may do so together: A,B. A model file remembers them.",
        metavar="NAMES",
    ),
]
TimeName = Annotated[
    str | None,
    typer.Option(
        "--time",
        help="Column by which the rows of a sequence are sorted, numbers or dates; "
        "otherwise they are in order.",
        metavar="NAME",
    ),
]
Categorical = Annotated[
    list[str] | None,
    typer.Option(
        help="Columns to treat as categorical: A,B. The word codes means all columns "
        "of a few whole numbers.",
        metavar="NAMES",
        rich_help_panel=_COLUMNS,
    ),
]
Real = Annotated[
    list[str] | None,
    typer.Option(
        help="Columns to treat as real: A,B.", metavar="NAMES", rich_help_panel=_COLUMNS
    ),
]
Drop = Annotated[
    list[str] | None,
    typer.Option(
        help="Columns to leave out of the model: A,B.",
        metavar="NAMES",
        rich_help_panel=_COLUMNS,
    ),
]
MissingMarks = Annotated[
    list[str] | None,
    typer.Option(
        "--na",
        help="More texts for missing values, besides empty cells, NA, NaN, ? and null.",
        metavar="TEXTS",
        rich_help_panel=_COLUMNS,
    ),
]
Thousands = Annotated[
    str,
    typer.Option(
        help="Mark between the thousands of numbers in text files: , for 1,467.45. A "
        "model remembers it.",
        metavar="MARK",
        rich_help_panel=_COLUMNS,
    ),
]
Encoding = Annotated[
    str | None,
    typer.Option(
        help="Encoding of text files, if not UTF-8: cp1252 for many from Windows.",
        metavar="NAME",
        rich_help_panel=_COLUMNS,
    ),
]
AllowMissing = Annotated[
    bool,
    typer.Option(
        "--allow-missing",
        help="Treat columns that the table lacks as missing in all rows.",
        rich_help_panel=_COLUMNS,
    ),
]
EscapeFormulas = Annotated[
    bool,
    typer.Option(
        "--escape-formulas",
        help="Put an apostrophe before text that spreadsheets would run as a formula.",
    ),
]
Components = Annotated[
    str | None,
    typer.Option(
        help="Components (per class): a number, or several to choose from: 1,2,4. Chosen "
        "by held-out rows by default.",
        metavar="NUMBERS",
        rich_help_panel=_MODEL,
    ),
]
CovarianceType = Annotated[
    str | None,
    _one_of(
        COVARIANCE_TYPES,
        "Covariance within a component; chosen by held-out rows by default.",
    ),
]
States = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="States (per class) of a model of sequences; chosen by held-out sequences "
        "by default.",
        rich_help_panel=_MODEL,
    ),
]
Topology = Annotated[
    str | None,
    _one_of(
        TOPOLOGIES,
        "Which states of a model of sequences may follow each other; chosen by held-out "
        "sequences by default.",
    ),
]
Exits = Annotated[
    bool,
    typer.Option(
        "--exits",
        help="Let the lengths of sequences count as well.",
        rich_help_panel=_MODEL,
    ),
]
Autoregressive = Annotated[
    bool,
    typer.Option(
        "--autoregressive",
        help="Let each frame of a sequence depend on the one before, which fills holes "
        "of smooth signals better. Classifiers try it by themselves.",
        rich_help_panel=_MODEL,
    ),
]
MethodName = Annotated[
    str | None,
    _one_of(
        METHODS,
        "What predicts the target: mixtures, or a linear layer on the components of a "
        "mixture; mixture by default.",
    ),
]
Effort = Annotated[
    str | None,
    typer.Option(
        metavar="fast|balanced|thorough|SECONDS",
        help="How long to search for what is not given; balanced by default. fast fits "
        "a single mixture. With a number of seconds, results depend on the machine.",
        rich_help_panel=_MODEL,
    ),
]
Seconds = Annotated[
    float | None,
    typer.Option(
        min=0.001,
        help="Search for about this long instead; the same as --effort with a number.",
        metavar="N",
        rich_help_panel=_MODEL,
    ),
]
ObjectiveName = Annotated[
    str | None, _one_of(OBJECTIVES, "What training maximises; hybrid by default.")
]
Tradeoff = Annotated[
    float | None,
    typer.Option(
        help="Weight of the discriminative term; chosen by held-out rows by default.",
        rich_help_panel=_MODEL,
    ),
]
Calibrate = Annotated[
    bool,
    typer.Option(
        "--calibrate",
        help="Correct the probabilities by cross-validation, also if all options are "
        "given; a search always does.",
        rich_help_panel=_MODEL,
    ),
]
Tune = Annotated[
    bool,
    typer.Option(
        "--tune",
        help="Choose a single mixture by five-fold cross-validation of the accuracy, "
        "instead of a committee.",
        rich_help_panel=_MODEL,
    ),
]
Threshold = Annotated[
    float | None,
    typer.Option(
        min=0.0, max=1.0, help="Flag rows below this probability; 0.01 by default."
    ),
]
Share = Annotated[
    float | None,
    typer.Option(min=0.0, max=1.0, help="Flag this share of the rows instead."),
]
Worst = Annotated[int, typer.Option(min=0, help="How many rows to show.")]
Seed = Annotated[int, typer.Option(help="Seed for everything random.")]
Jobs = Annotated[
    int | None, typer.Option(help="Number of threads; of processes with --tune.")
]
Check = Annotated[
    bool,
    typer.Option(
        help="Estimate how good the model is on new rows, by training it again without "
        "some: about ten seconds, or once more the time of the fit."
    ),
]
Coverage = Annotated[
    float | None,
    typer.Option(
        help="Probability that an interval holds its target; 0.9 by default. For "
        "regressors.",
    ),
]
MemoryLimit = Annotated[
    str | None,
    typer.Option(
        "--memory",
        help="A table that takes more memory than this, such as 2GB, is read in blocks "
        "by a fit; by default, one that does not fit into the memory that is free.",
        metavar="SIZE",
    ),
]
ChunkRows = Annotated[int, typer.Option(min=1, help="Rows to hold in memory at a time.")]
AsJson = Annotated[
    bool, typer.Option("--json", help="Print the result as one JSON object.")
]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="Show results, warnings and errors only.")
]
