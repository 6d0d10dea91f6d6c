"""The bases of this adapter's errors, as classes that dbt shows without a stack trace."""

from dbt.adapters.exceptions.connection import FailedToConnectError
from dbt_common.exceptions import CompilationError, DbtConfigError, DbtRuntimeError

from dbt.adapters.openmirroring.text.codes import with_code


class CodedError(DbtRuntimeError):
    """An error of this adapter, which may have a section in docs/messages.md.

    Args:
        text: what is wrong, and what to do
        code: the code of its section; empty if it has none
    """

    def __init__(self, text: str, *, code: str = "") -> None:
        super().__init__(text)
        self.text, self.code = str(self.msg), code  # for messages that quote it; no secrets
        self.msg = with_code(self.text, code)


class RunError(CodedError):
    """Something went wrong in a run. The message says what, and what to do."""


class RefusedError(CodedError, CompilationError):
    """The project asks for something that cannot be. Nothing was published."""


class ProfileError(CodedError, DbtConfigError):
    """A setting in the profile is not valid."""


class SparkError(CodedError, FailedToConnectError):
    """There is no Spark, or no Spark any more."""


def quoted_text(error: DbtRuntimeError) -> str:
    """Return the message of an error for another message, which has a code of its own."""
    return error.text if isinstance(error, CodedError) else str(error.msg)
