"""What a connection knows of its Spark before and after it asks."""

from __future__ import annotations

from multiprocessing import get_context
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
from dbt.adapters.contracts.connection import Connection, ConnectionState
from dbt_common.exceptions import DbtConfigError, DbtDatabaseError

from dbt.adapters.openmirroring.connections import OpenMirroringConnectionManager
from dbt.adapters.openmirroring.credentials import OpenMirroringCredentials
from dbt.adapters.openmirroring.destination.destination import Destination, Target
from dbt.adapters.openmirroring.landing_zone.batch import Owner
from dbt.adapters.openmirroring.landing_zone.layout import TableFolder
from dbt.adapters.openmirroring.types.crossing import selection


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


# columns and rows by the begin of a statement
Answers = dict[str, tuple[list[str], list[tuple[Any, ...]]]]


class Server:
    """A cursor of a Spark server.

    Args:
        answers: any other statement is an error
    """

    def __init__(self, answers: Answers) -> None:
        self.ran: list[str] = []
        self._answers = answers
        self._names: list[str] = []
        self._rows: list[tuple[Any, ...]] = []

    def cursor(self) -> Server:
        return self

    def execute(self, sql: str, _bindings: Any = None) -> None:
        self.ran.append(sql)
        for begin, answer in self._answers.items():
            if sql.startswith(begin):
                self._names, self._rows = answer
                return
        raise DbtDatabaseError(f"No answer to {sql}")

    @property
    def description(self) -> list[tuple[Any, ...]]:
        return [(name, *[None] * 6) for name in self._names]

    def fetchall(self) -> list[tuple[Any, ...]]:
        return self._rows


def connected(project: Path, server: Server) -> OpenMirroringConnectionManager:
    connections = manager(project, method="thrift", host="spark")
    connection: Any = SimpleNamespace(
        name="node", state=ConnectionState.OPEN, handle=server, transaction_open=True
    )
    connections.thread_connections[connections.get_thread_identifier()] = connection
    return connections


DESCRIBED = ["col_name", "data_type", "comment"]


def test_a_server_converts_the_values_of_a_query_that_code_of_the_user_reads(
    tmp_path: Path,
) -> None:
    query = "select at, n, at from t -- all"
    columns = [("at", "timestamp", ""), ("n", "int", ""), ("at", "timestamp", "")]
    sent = selection([dtype for _, dtype, _ in columns])
    found = ["2024-10-27 02:30:00|1729992600000000|false", 1, "2024-01-01 00:00:00|0|true"]
    server = Server(
        {
            "describe": (DESCRIBED, columns),
            "select concat": (list(sent), [tuple(found)]),
        }
    )

    _, table = connected(tmp_path, server).execute(f"{query};\n", fetch=True)

    assert server.ran == [
        f"describe query {query}",
        f"select {', '.join(sent.values())} from (\n{query}\n) as t(c0, c1, c2)",
    ]
    assert table.column_names == ("at", "n", "at_2")
    assert [str(value) for value in table.rows[0]] == [
        *("2024-10-27 02:30:00+01:00", "1", "2024-01-01 00:00:00")
    ]


@pytest.mark.parametrize("described", [True, False])
def test_a_server_runs_other_queries_as_they_are(tmp_path: Path, described: bool) -> None:
    """Those whose values Python has as they are, and those that Spark cannot describe."""
    answers: Answers = {"select": (["n"], [(1,)])}
    if described:
        answers["describe"] = (DESCRIBED, [("n", "int", "")])
    server = Server(answers)

    _, table = connected(tmp_path, server).execute("select 1 as n", fetch=True)

    assert server.ran == ["describe query select 1 as n", "select 1 as n"]
    assert table.rows[0][0] == 1


def test_a_server_is_asked_for_no_types_of_other_statements(tmp_path: Path) -> None:
    server = Server({"show": (["name"], [("a",)]), "select": (["n"], [(1,)])})
    connections = connected(tmp_path, server)

    connections.execute("show tables", fetch=True)
    connections.execute("select n from a hook")
    # of this adapter
    connections._users[connections.get_thread_identifier()] = connections.get_thread_connection()
    connections.execute("select 1 as n", fetch=True)

    assert server.ran == ["show tables", "select n from a hook", "select 1 as n"]
