"""Checks for features of dbt that open-source Spark does not support."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dbt_common.exceptions import CompilationError, DbtRuntimeError


def refuse_grants(config: Mapping[str, Any]) -> None:
    """Raise a CompilationError if a node has `grants`."""
    if config.get("grants"):
        raise CompilationError(
            "`grants` cannot be applied: open-source Spark has no permissions. Remove them; "
            "who may read a mirrored table is decided in Fabric."
        )


def no_python_models() -> DbtRuntimeError:
    """Return the error for a Python model on a connection that cannot run it."""
    return DbtRuntimeError(
        "Python models need `method: session`, `connect` or `livy` in the profile."
    )


def refuse_function(function: Mapping[str, Any]) -> None:
    """Raise a CompilationError if Spark's catalog cannot hold the function of a dbt node."""
    language, kind = function.get("language"), function["config"].get("type")
    if language != "sql":
        raise CompilationError(
            f"A function in {language} cannot be created: Spark's catalog holds functions in SQL. "
            "Write it in SQL; in a Python model, define it in the model."
        )
    if kind != "scalar":
        raise CompilationError(
            f"A function of type {kind} cannot be created: in Spark's SQL a function of dbt is "
            "`scalar`. Write a macro for the rest."
        )
    if function.get("overloads"):
        raise CompilationError(
            "`overloads` cannot be created: in Spark a schema has one function of a name, and the "
            "last would replace the others. Give each a name of its own, or its arguments a "
            "`default_value`."
        )
    refuse_grants(function["config"])
