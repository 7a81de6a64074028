"""Tables in files: readers, and estimators that take them as they are."""

from transferable.tables.classifier import TableClassifier, TableRegressor
from transferable.tables.encoder import TableEncoder
from transferable.tables.reading import TableError, read_table

__all__ = ["TableClassifier", "TableEncoder", "TableError", "TableRegressor", "read_table"]
