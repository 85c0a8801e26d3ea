"""The commands, in the order in which help lists them."""

from collections.abc import Callable

from hybridmix.cli.commands.applying import impute, outliers, predict, sample
from hybridmix.cli.commands.exploring import explore
from hybridmix.cli.commands.judging import demo, evaluate, inspect, report
from hybridmix.cli.commands.learning import fit

# Each with what help shows as examples.
COMMANDS: dict[Callable[..., None], tuple[str, ...]] = {
    fit: (
        "hybridmix fit train.csv --target class -o model.hmx",
        "hybridmix fit train.parquet -t class -o model.hmx --tune --drop name,id",
        "hybridmix fit houses.csv -t price -o model.hmx --task regress",
        "hybridmix fit train.csv -o density.hmx --components 1,2,4,8",
        "hybridmix fit frames.csv -t label --sequence id --time t -o model.hmx",
    ),
    predict: (
        "hybridmix predict model.hmx test.csv -o predicted.csv",
        "hybridmix predict regressor.hmx test.csv --coverage 0.8 -o predicted.csv",
        "hybridmix predict model.hmx test.csv --keep id --density | head",
        "hybridmix predict sequences.hmx frames.csv --per-frame -o states.csv",
    ),
    evaluate: (
        "hybridmix evaluate model.hmx test.csv",
        "hybridmix evaluate model.hmx test.csv --json",
    ),
    impute: (
        "hybridmix impute table.csv -o filled.csv",
        "hybridmix impute table.csv --target class -o filled.csv",
        "hybridmix impute model.hmx new.csv -o filled.csv",
    ),
    outliers: (
        "hybridmix outliers table.csv",
        "hybridmix outliers model.hmx new.csv --share 0.05 -o flagged.csv",
    ),
    sample: ("hybridmix sample model.hmx -n 500 -o drawn.csv",),
    inspect: ("hybridmix inspect model.hmx",),
    report: ("hybridmix report model.hmx test.csv -o report.html",),
    explore: (
        "hybridmix explore model.hmx test.csv",
        "hybridmix explore model.hmx --no-browser",
    ),
    demo: ("hybridmix demo --folder demo",),
}
