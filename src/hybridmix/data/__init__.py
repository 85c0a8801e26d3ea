"""Tables to rows: column types, missing cells, categories, labels."""

from hybridmix.data.blocks import BlockedDataset, TrainingRows
from hybridmix.data.labels import encode_labels, number_labels
from hybridmix.data.rows import MISSING_CODE, UNLABELLED, Dataset, Rows
from hybridmix.data.schema import Schema
from hybridmix.data.table import Table, read_table, read_training_table

__all__ = [
    "MISSING_CODE",
    "UNLABELLED",
    "BlockedDataset",
    "Dataset",
    "Rows",
    "Schema",
    "Table",
    "TrainingRows",
    "encode_labels",
    "number_labels",
    "read_table",
    "read_training_table",
]
