"""What a connection knows of its Spark before and after it asks."""

from __future__ import annotations

from multiprocessing import get_context
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
from dbt.adapters.contracts.connection import Connection, ConnectionState
from dbt_common.exceptions import DbtConfigError

from dbt.adapters.openmirroring.connections import OpenMirroringConnectionManager
from dbt.adapters.openmirroring.credentials import OpenMirroringCredentials
from dbt.adapters.openmirroring.destination.destination import Destination, Target
from dbt.adapters.openmirroring.landing_zone.batch import Owner
from dbt.adapters.openmirroring.landing_zone.layout import TableFolder


def manager(project: Path, **settings: Any) -> OpenMirroringConnectionManager:
    given = {"schema": "analytics", "landing_zone": "landing", **settings}
    credentials = OpenMirroringCredentials.from_dict(given)
    profile: Any = SimpleNamespace(credentials=credentials, project_root=str(project))
    return OpenMirroringConnectionManager(profile, get_context("spawn"))


def test_only_a_target_with_the_embedded_spark_has_a_folder_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # another test of this process may have started a Spark
    monkeypatch.setattr("dbt.adapters.openmirroring.connections._is_there", lambda: False)

    found = manager(tmp_path, spark_folder="warehouse").own_spark()

    assert found.home == tmp_path / "warehouse"
    with pytest.raises(DbtConfigError, match="does not use the embedded Spark"):
        assert manager(tmp_path, method="thrift", host="spark").own_spark()


@pytest.mark.parametrize("method", ["session", "thrift"])
def test_a_process_of_spark_connect_is_not_asked_for_its_session_at_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    """A process inherits this variable, but may lack the client that PySpark would import."""
    monkeypatch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")
    asked = Mock(side_effect=ImportError("grpcio must be installed"))
    module = "dbt.adapters.openmirroring.connections"
    monkeypatch.setattr(f"{module}._is_there", asked)
    monkeypatch.setattr(f"{module}.uses_spark", lambda: True)
    monkeypatch.setattr(f"{module}.is_in_command", lambda: True)

    manager(tmp_path, method=method, host="spark").start_early()

    asked.assert_not_called()


@pytest.fixture
def connections(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> OpenMirroringConnectionManager:
    """Of a thread that has a connection, whose sessions are new objects."""

    def opened(connection: Connection) -> Connection:
        connection.state, connection.handle = ConnectionState.OPEN, Mock()
        return connection

    found = manager(tmp_path)
    monkeypatch.setattr(found, "open", opened)
    found.set_connection_name("orders")
    return found


def session(connections: OpenMirroringConnectionManager) -> Any:
    return connections.get_thread_connection().handle


def test_only_code_of_the_user_leaves_the_session_of_the_adapter(
    connections: OpenMirroringConnectionManager,
) -> None:
    users = session(connections)
    with connections.own_session():
        own = session(connections)
        with connections.own_session():
            assert session(connections) is own
        assert session(connections) is own is not users
        with connections.users_session():
            assert session(connections) is users
            with connections.own_session():
                assert session(connections) not in (own, users)
            assert session(connections) is users
    assert session(connections) is users

    connections.begin_anew()

    assert session(connections) is not users
    users.close.assert_called_once()


def test_whoever_locks_a_table_is_in_the_session_of_the_adapter(
    connections: OpenMirroringConnectionManager, tmp_path: Path
) -> None:
    users, target = session(connections), Target(landing_zone=str(tmp_path / "zone"))
    folders: Any = {"project": lambda: tmp_path, "warehouse": lambda: None}
    destination = Destination(target, **folders, own_session=connections.own_session)

    with destination.publication(TableFolder("shop", "orders"), Owner("shop", "orders", "shop")):
        assert session(connections) is not users

    assert session(connections) is users


def test_spark_is_asked_for_its_version_once(tmp_path: Path) -> None:
    connections = manager(tmp_path)
    answer = SimpleNamespace(rows=[("4.1.0 2f9e1f1",)])
    connections.execute = Mock(return_value=(None, answer))  # type: ignore[method-assign]

    assert [connections.spark_major() for _ in range(2)] == [4, 4]

    connections.execute.assert_called_once()
