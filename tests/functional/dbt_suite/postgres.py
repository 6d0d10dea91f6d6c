"""dbt's tests for Postgres, in Spark: their SQL, and tables that are updated in place."""

from __future__ import annotations

import re
from collections.abc import Iterator
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from dbt.adapters.spark.connections import PyhiveConnectionWrapper
from dbt.tests.fixtures.project import TestProjInfo
from dbt.tests.util import get_connection
from pyspark.sql import SparkSession
from pyspark.sql.functions import expr, lit

from dbt.adapters.openmirroring.impl import OpenMirroringAdapter
from dbt.adapters.openmirroring.spark.session import SessionHandle

_END = "\0"
_TOKENS = re.compile(
    r"""'[^']*'                  # a string, which stays as it is
      | --.*                     # a comment
      | "[^"]*"                  # a name
      | `?None`?\.               # the database: Spark has none
      | \btext\b
      | \ without\ time\ zone
      | ;
    """,
    re.IGNORECASE | re.VERBOSE,
)
_START = r"\s*(?:/\*.*?\*/)?\s*"  # after dbt's comment
_FLAGS = re.IGNORECASE | re.DOTALL
_UPDATE = re.compile(rf"{_START}update\s+(\S+)\s+set\s+(.+?)(?:\s+where\s+(.+))?", _FLAGS)
_DELETE = re.compile(rf"{_START}delete\s+from\s+(\S+)(?:\s+where\s+(.+))?", _FLAGS)
_INSERT = re.compile(rf"{_START}insert\s+into\s+(\S+)\s*(?:\(([^)]*)\))?\s*(\w.*)", _FLAGS)
_ADD_COLUMN = re.compile(
    r"(alter\s+table\s+(\S+)\s+add\s+column\s+(\w+)\s+\S+)\s+default\s+('[^']*'|null)",
    re.IGNORECASE,
)
_NEXT_ASSIGNMENT = re.compile(r",(?=\s*\w+\s*=)")


@pytest.fixture(scope="module", autouse=True)
def postgres(spark: SparkSession) -> Iterator[None]:
    """Let Spark run what dbt's tests have for Postgres."""
    run_sql: Any = OpenMirroringAdapter.run_sql_for_tests
    session = spark.newSession()

    def run_statements(self: OpenMirroringAdapter, sql: str, fetch: Any, conn: Any) -> Any:
        result = None
        for statement in in_spark(sql).split(_END):
            if table := _insert(session, statement):
                run_sql(self, f"refresh table {table}", None, conn)
            elif statement.strip():
                result = run_sql(self, statement, fetch, conn)
        return result

    def overwriting(execute: Any) -> Any:
        def execute_or_overwrite(self: Any, sql: str, bindings: Any = None) -> None:
            if table := _overwrite(session, sql):
                execute(self, f"refresh table {table}")
            else:
                execute(self, sql, bindings)

        return execute_or_overwrite

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(OpenMirroringAdapter, "run_sql_for_tests", run_statements)
        for handle in (SessionHandle, PyhiveConnectionWrapper):
            patch.setattr(handle, "execute", overwriting(handle.execute))
        patch.setattr(TestProjInfo, "get_tables_in_schema", _tables_in_schema)
        yield


def in_spark(sql: str) -> str:
    """Postgres's SQL with Spark's names, quotes and types."""
    # only tables of Parquet files have defaults by themselves
    sql = _ADD_COLUMN.sub(r"\1; update \2 set \3 = \4", sql)
    return _TOKENS.sub(_token_in_spark, sql)


def _token_in_spark(token: re.Match[str]) -> str:
    text = token[0]
    if text.startswith("'"):
        return text
    if text.startswith('"'):
        return text.replace('"', "`")
    return {"text": "string", ";": _END}.get(text.lower(), "")


def _tables_in_schema(project: TestProjInfo) -> dict[str, str]:
    """Return the tables as Postgres's information schema would list them."""
    adapter = project.adapter
    schema = adapter.Relation.create(database=project.database, schema=project.test_schema)
    with get_connection(adapter):
        relations = adapter.list_relations_without_caching(schema)
    return {relation.identifier: relation.type for relation in relations}


def _insert(session: SparkSession, sql: str) -> str | None:
    """Do what an INSERT would, if strings were values of every type; the table's name."""
    insert = _INSERT.fullmatch(sql)
    if not insert:
        return None
    table, names, query = insert.groups()
    session.catalog.refreshTable(table)
    target = session.table(table).schema
    given = [name.strip(" `\n") for name in names.split(",")] if names else target.names
    rows = session.sql(query).toDF(*given)
    values = [
        (rows[field.name] if field.name in given else lit(None)).cast(field.dataType)
        for field in target
    ]
    rows.select(*values).write.insertInto(table)
    return str(table)


def _overwrite(session: SparkSession, sql: str) -> str | None:
    """Do what an UPDATE or a DELETE would, if Parquet files knew them; the table's name."""
    if update := _UPDATE.fullmatch(sql):
        table, assignments, where = update.groups(default="true")
        values = dict(a.split("=", 1) for a in _NEXT_ASSIGNMENT.split(assignments))
        session.catalog.refreshTable(table)
        rows = session.table(table).withColumns(
            {name.strip(): expr(f"if({where}, {value}, {name})") for name, value in values.items()}
        )
    elif delete := _DELETE.fullmatch(sql):
        table, where = delete.groups(default="true")
        session.catalog.refreshTable(table)
        rows = session.table(table).where(f"not coalesce({where}, false)")
    else:
        return None
    # Spark overwrites no table that it is reading
    with TemporaryDirectory() as folder:
        rows.write.parquet(f"{folder}/rows")
        copy = session.read.parquet(f"{folder}/rows")
        copy.write.insertInto(table, overwrite=True)
    return str(table)
