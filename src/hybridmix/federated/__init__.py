"""Training on tables of several sites, of which only sums over rows leave the site.

The sites agree on what columns are like (`summarise_columns`, `combine_schemas`). Then
each site sums up what its rows say about the present model (`summarise`), and one of them
adds the sums (`combine`) and improves the model: `train` by callbacks, `resume` by files,
`step` by one iteration of EM.
"""

from hybridmix.federated.columns import (
    ColumnSummary,
    combine_schemas,
    summarise_columns,
)
from hybridmix.federated.files import load_summary, save_summary
from hybridmix.federated.summaries import Summary, combine, shared, summarise
from hybridmix.federated.training import resume, step, train

__all__ = [
    "ColumnSummary",
    "Summary",
    "combine",
    "combine_schemas",
    "load_summary",
    "resume",
    "save_summary",
    "shared",
    "step",
    "summarise",
    "summarise_columns",
    "train",
]
