"""What stops a table."""

from __future__ import annotations

from dbt_common.exceptions import DbtRuntimeError

# characters of a message; what it quotes was written by others and may be of any length
_LONGEST = 2_000


class ReplicatorError(DbtRuntimeError):
    """The replicator cannot work at all."""


class TableError(DbtRuntimeError):
    """A table cannot be replicated any further until what is wrong with it is put right.

    Args:
        code: as the service would report it in `errorCode`
        message: what was found, and the way out
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(printable(message))
        self.code = code

    @classmethod
    def of(cls, error: Exception) -> TableError:
        """Any error as that of a table."""
        if isinstance(error, TableError):
            return error
        return cls("SystemError", str(error) or type(error).__name__)

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


def printable(text: str) -> str:
    """One line of text for every terminal and encoding: what is not printable is escaped."""
    shown = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
    if shown.isprintable():
        return shown
    # file names that are not UTF-8 have surrogates, which cannot be encoded
    escaped = (c if c.isprintable() else repr(c)[1:-1] for c in shown.replace("\n", " "))
    return "".join(escaped)
