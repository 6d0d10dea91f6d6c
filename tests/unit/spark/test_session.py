"""Connections of dbt to a Spark."""

from __future__ import annotations

from multiprocessing import get_context
from types import SimpleNamespace
from typing import Any

from dbt.adapters.contracts.connection import ConnectionState

from dbt.adapters.openmirroring.connections import OpenMirroringConnectionManager
from dbt.adapters.openmirroring.credentials import OpenMirroringCredentials


class Handle:
    """A handle that tells whether it was cancelled."""

    def __init__(self, is_lost: bool) -> None:
        self.is_cancelled = False
        self._is_lost = is_lost

    def cancel(self) -> None:
        if self._is_lost:
            raise ConnectionError("Spark is not there any more")
        self.is_cancelled = True


def test_a_connection_that_cannot_be_cancelled_does_not_keep_the_others_running() -> None:
    credentials = OpenMirroringCredentials(schema="analytics", landing_zone="landing")
    profile: Any = SimpleNamespace(credentials=credentials)
    manager = OpenMirroringConnectionManager(profile, get_context("spawn"))
    handles = [Handle(is_lost=True), Handle(is_lost=False)]
    for thread, handle in enumerate(handles):
        connection: Any = SimpleNamespace(
            name=f"node {thread}", state=ConnectionState.OPEN, handle=handle
        )
        manager.thread_connections[thread] = connection

    cancelled = manager.cancel_open()

    assert cancelled == ["node 0", "node 1"]
    assert handles[1].is_cancelled
