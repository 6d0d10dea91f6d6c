"""The statements of a run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest.mock import patch

from dbt.adapters.openmirroring.spark.session import SessionHandle


def statements(run: Callable[[], object]) -> list[str]:
    """Return the statements that a run in this process sends to Spark."""
    sent: list[str] = []
    execute = SessionHandle.execute

    def record(self: SessionHandle, sql: str, *args: Any) -> None:
        sent.append(sql)
        execute(self, sql, *args)

    with patch.object(SessionHandle, "execute", record):
        run()
    return sent
