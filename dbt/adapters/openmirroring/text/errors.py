"""The bases of this adapter's errors, as classes that dbt shows without a stack trace."""

from dbt_common.exceptions import DbtConfigError, DbtRuntimeError


class RunError(DbtRuntimeError):
    """Something went wrong in a run. The message says what, and what to do."""


class ProfileError(DbtConfigError):
    """A setting in the profile is not valid."""
