"""The SQL dialect of this adapter for sqlglot, which imports this module by its entry point.

Tools for lineage take the adapter's type in dbt's manifest for the name of a dialect.
"""

from sqlglot.dialects.spark import Spark


class OpenMirroring(Spark):
    """Spark's SQL. sqlglot knows the dialect by the name of this class."""
