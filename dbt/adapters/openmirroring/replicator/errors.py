"""The errors that stop the replicator or a table."""

from __future__ import annotations

from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.openmirroring.text.errors import CodedError
from dbt.adapters.openmirroring.text.shown import escaped


class ReplicatorError(DbtRuntimeError):
    """An error that stops the whole replicator."""


class TableError(CodedError):
    """An error that stops the replication of one table until its cause is fixed.

    Args:
        error_code: the `errorCode` that the service would report
        message: the problem and its solution
    """

    def __init__(self, error_code: str, message: str, *, code: str = "") -> None:
        super().__init__(escaped(message), code=code)
        self.error_code = error_code

    @classmethod
    def of(cls, error: Exception) -> TableError:
        """Convert any error to a TableError."""
        if isinstance(error, TableError):
            return error
        return cls("SystemError", str(error) or type(error).__name__)
