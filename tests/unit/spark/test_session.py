"""Connections of dbt to a Spark."""

from __future__ import annotations

from multiprocessing import get_context
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

from dbt.adapters.contracts.connection import ConnectionState

from dbt.adapters.openmirroring.connections import OpenMirroringConnectionManager
from dbt.adapters.openmirroring.credentials import OpenMirroringCredentials


def test_a_connection_that_cannot_be_cancelled_does_not_keep_the_others_running() -> None:
    credentials = OpenMirroringCredentials(schema="analytics", landing_zone="landing")
    profile: Any = SimpleNamespace(credentials=credentials)
    manager = OpenMirroringConnectionManager(profile, get_context("spawn"))
    lost, there = Mock(**{"cancel.side_effect": ConnectionError("Spark is gone")}), Mock()
    for thread, handle in enumerate((lost, there)):
        connection: Any = SimpleNamespace(
            name=f"node {thread}", state=ConnectionState.OPEN, handle=handle
        )
        manager.thread_connections[thread] = connection

    cancelled = manager.cancel_open()

    assert cancelled == ["node 0", "node 1"]
    there.cancel.assert_called_once()
