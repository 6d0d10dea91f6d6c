"""The errors that stop the replicator or a table."""

from __future__ import annotations

from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.openmirroring.text.shown import escaped


class ReplicatorError(DbtRuntimeError):
    """An error that stops the whole replicator."""


class TableError(DbtRuntimeError):
    """An error that stops the replication of one table until its cause is fixed.

    Args:
        code: the `errorCode` that the service would report
        message: the problem and its solution
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(escaped(message))
        self.code = code

    @classmethod
    def of(cls, error: Exception) -> TableError:
        """Convert any error to a TableError."""
        if isinstance(error, TableError):
            return error
        return cls("SystemError", str(error) or type(error).__name__)
