"""dbt-spark's tests with the fixtures of dbt's own: one Spark, everything mirrored, compared."""

from __future__ import annotations

from typing import Any

import pytest

from tests.dbt_spark.changes import CANNOT_PASS, MIXINS

pytest_plugins = (
    "tests.conftest",
    "tests.functional.conftest",
    "tests.functional.dbt_suite.conftest",
)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "skip_profile(profile): of profiles that are not ours")


def pytest_pycollect_makeitem(collector: pytest.Module, name: str, obj: Any) -> None:
    if name in MIXINS:
        setattr(collector.obj, name, type(name, (MIXINS[name], obj), {}))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Function]) -> None:
    names = {item: {item.cls.__name__, f"{item.cls.__name__}::{item.name}"} for item in items}
    unknown = (MIXINS.keys() | CANNOT_PASS.keys()).difference(*names.values())
    if unknown:
        raise pytest.UsageError(f"dbt-spark has no tests {', '.join(sorted(unknown))}")
    deselected = [item for item in items if names[item] & CANNOT_PASS.keys()]
    config.hook.pytest_deselected(items=deselected)
    items[:] = [item for item in items if item not in deselected]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    terminalreporter.section("dbt-spark's tests that cannot pass")
    for name, reason in CANNOT_PASS.items():
        terminalreporter.line(f"{name}: {reason}")
