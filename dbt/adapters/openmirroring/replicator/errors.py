"""What stops a table."""

from __future__ import annotations

from dbt_common.exceptions import DbtRuntimeError


class ReplicatorError(DbtRuntimeError):
    """The replicator cannot work at all."""


class TableError(DbtRuntimeError):
    """A table cannot be replicated any further until what is wrong with it is put right.

    Args:
        code: as the service would report it in `errorCode`
        message: what was found, and the way out
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code

    @property
    def description(self) -> str:
        return f"{self.code}: {self.msg}"


def unreadable(name: str, reason: object) -> TableError:
    """A file that is empty, incomplete or corrupt."""
    return TableError(
        "InputValidationError",
        f"{name} cannot be read: {reason}. The files after it wait until a valid file of the same "
        "name is in its place.",
    )
