"""A dbt project in a folder: written, run and looked at by a test."""

from __future__ import annotations

import datetime as dt
import json
import re
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import yaml
from dbt.cli.main import dbtRunner
from deltalake import DeltaTable
from pyspark.sql import Row as SparkRow
from pyspark.sql import SparkSession
from pyspark.sql.types import StructField

from dbt.adapters.openmirroring.landing_zone.layout import TableFolder
from dbt.adapters.openmirroring.landing_zone.local.storage import LocalStorage
from dbt.adapters.openmirroring.landing_zone.storage import Storage
from dbt.adapters.openmirroring.node.snapshot.scratch_tables import (
    ROLES_OF_ROWS,
)
from dbt.adapters.openmirroring.protocol.facts import NEXT
from dbt.adapters.openmirroring.replicator.replicator import Replicator
from dbt.adapters.openmirroring.text.sql import quoted
from dbt.adapters.openmirroring.types.columns import with_keys_as_text
from tests.delta_tables import content
from tests.functional.fast_paths import take_tables_for_large
from tests.onelake_server import OneLakeServer

NAME = "shop"

# how complex values land (docs/changes.md, "What lands")
JSON_OPTIONS = (
    "map('ignoreNullFields', 'false', 'timeZone', 'UTC', "
    "'timestampFormat', \"yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX\", "
    "'timestampNTZFormat', \"yyyy-MM-dd'T'HH:mm:ss.SSSSSS\")"
)

# the columns that are not NULL, by name
Row = tuple[tuple[str, str], ...]


class Project:
    """A project with the profile `shop`.

    Args:
        path: where it is written
        spark: where its models are looked at; without it, in the warehouse of its embedded Spark
        file_format: of its tables in Spark
    """

    def __init__(
        self, path: Path, spark: SparkSession | None = None, file_format: str = "parquet"
    ) -> None:
        self.path = path
        self.file_format = file_format
        self.schema = f"test_{uuid.uuid4().hex[:8]}"
        self.landing_zone = path / "mirror.MirroredDatabase" / "Files" / "LandingZone"
        self.onelake: OneLakeServer | None = None
        self._spark = spark
        self._is_on_another_machine = False
        # tables that were found mirrored since the last command, and what was found tidy ("")
        self._found: set[str] = set()
        self.name = NAME
        self.target: dict[str, Any] = {
            "type": "openmirroring",
            "schema": self.schema,
            "landing_zone": "mirror.MirroredDatabase/Files/LandingZone",
            "threads": 2,
            # a test that stops leaves nothing behind for long
            "spark_idle_timeout": "30s",
        }
        self.write_project()

    def write_project(self, **changes: Any) -> None:
        project: dict[str, Any] = {
            "name": self.name,
            "version": "1.0",
            "profile": "shop",
            # our macros and what the documentation shows are to last
            "flags": {"warn_error_options": {"error": ["Deprecations"]}},
        }
        if self.file_format != "parquet":
            for kind in ("models", "seeds", "snapshots"):
                project[kind] = {"+file_format": self.file_format}
        for name, value in changes.items():
            project[name] = {**project.get(name, {}), **value} if name in project else value
        self.write("dbt_project.yml", yaml.safe_dump(project))
        self.write_profile()

    def write_profile(self) -> None:
        outputs = {"target": "local", "outputs": {"local": self.target}}
        self.write("profiles.yml", yaml.safe_dump({"shop": outputs}))

    def name_schema(self, name: str) -> None:
        """Give the project another schema."""
        self.schema = self.target["schema"] = name
        self.write_project()

    def write(self, name: str, content: str) -> None:
        (self.path / name).parent.mkdir(parents=True, exist_ok=True)
        (self.path / name).write_text(content)

    def take_tables_for_large(self) -> None:
        """Let tables of few rows be published as those of many are."""
        take_tables_for_large(self.path)

    def model(self, sql: str, name: str = "orders", **config: Any) -> None:
        """Write a table model; its options as in `config()`."""
        options = {"materialized": "table", **config}
        arguments = ", ".join(f"{key}={value!r}" for key, value in options.items())
        self.write(f"models/{name}.sql", f"{{{{ config({arguments}) }}}}\n{sql}\n")

    @property
    def is_remote(self) -> bool:
        """Spark is a server."""
        return "method" in self.target

    def arguments(self, *command: str) -> list[str]:
        """Return the arguments that dbt is called with, after which all may be different."""
        self._found.clear()
        folders = ["--project-dir", str(self.path), "--profiles-dir", str(self.path)]
        return [*command, *folders, "--quiet"]

    def dbt(self, *command: str) -> bool:
        """Call dbt; True if it succeeded."""
        return dbtRunner().invoke(self.arguments(*command)).success

    def run(self, *args: str, command: str = "run") -> dict[str, Any]:
        """Run the project, and fail if it fails.

        Returns:
            `adapter_response` of the model `orders`, or of the only node
        """
        success = self.dbt(command, *args)
        results = self.results()
        assert success, [result["message"] for result in results.values()]
        result: dict[str, Any] = results.get("orders") or next(iter(results.values()))
        return dict(result["adapter_response"])

    @contextmanager
    def dry_run(self) -> Iterator[None]:
        """Let runs be dry."""
        self.target["dry_run"] = True
        self.write_project()
        try:
            yield
        finally:
            del self.target["dry_run"]
            self.write_project()

    def fail(self, *args: str, command: str = "run") -> str:
        """Run the project, and fail if it does not.

        Returns:
            the messages of the nodes that failed; that of the command, if it was refused before
            its first node
        """
        result = dbtRunner().invoke(self.arguments(command, *args))
        assert not result.success
        if result.exception:
            return str(result.exception)
        failed = [r for r in self.results().values() if r["status"] not in ("success", "skipped")]
        return "\n".join(result["message"] for result in failed)

    def stop(self, *args: str, command: str = "run") -> str:
        """Run a command that is refused before its first node; its message."""
        result = dbtRunner().invoke(self.arguments(command, *args))
        assert result.exception, "the command was not refused"
        return str(result.exception)

    @property
    def storage(self) -> Storage:
        """The landing zone, for a process of its own."""
        return self.onelake.storage() if self.onelake else LocalStorage(self.landing_zone)

    def let_claims_expire(self) -> None:
        """Let some minutes pass, after which what a killed run holds in OneLake is free."""
        if self.onelake:
            self.onelake.advance(300)

    def results(self) -> dict[str, Any]:
        """The last run's results by the node's name."""
        content = json.loads((self.path / "target" / "run_results.json").read_text())
        return {result["unique_id"].split(".")[2]: result for result in content["results"]}

    def responses(self) -> dict[str, Any]:
        """`adapter_response` of each node of the last run."""
        return {name: result["adapter_response"] for name, result in self.results().items()}

    def folder(self, table: str = "orders") -> Path:
        return self.landing_zone / f"{self.schema}.schema" / table

    def files(self, table: str = "orders") -> list[Path]:
        """The data files in the order of their numbers, also those that were applied."""
        folders = (self.folder(table), self.folder(table) / "_ProcessedFiles")
        return sorted(
            (file for folder in folders for file in folder.glob("[!_]*.*")),
            key=lambda file: file.name,
        )

    def mirror(self, table: str = "orders") -> Counter[Row]:
        """The mirrored table's rows, after all that was published has been applied."""
        return mirrored_rows(self.landing_zone, self.schema, table)

    def relation(self, table: str = "orders") -> Counter[Row]:
        """The model's rows as Spark has them; complex values as JSON."""
        if self._spark is None:
            files = self.path / ".spark" / "warehouse" / f"{self.schema}.db" / table
            return Counter(canonical(row.items()) for row in pq.read_table(files).to_pylist())
        return relation_rows(self._spark, self.schema, table)

    def sql(self, statement: str) -> list[SparkRow]:
        assert self._spark, "this project has its own Spark"
        # this one would remember files on a server, and tables of Iceberg
        is_able = hasattr(self._spark, "newSession")  # not with Spark Connect before 4.2
        session = self._spark.newSession() if is_able else self._spark
        return session.sql(statement).collect()

    def assert_mirrored(self, table: str = "orders") -> None:
        """The mirror has the model's rows, and nothing is left half done."""
        mirror, relation = self.mirror(table), self.relation(table)
        assert mirror == relation, f"{mirror - relation} | {relation - mirror}"
        self._found |= {table} if self._spark else set()  # another process may run dbt
        if "" not in self._found:  # a test often asks for each of many tables
            self.assert_tidy()

    def assert_replicated(self) -> None:
        """All that this project has published is in the mirror, as Spark has it."""
        for journal in self.landing_zone.glob(f"{self.schema}.schema/*/_journal.json"):
            table = journal.parent.name
            if table in self._found:
                continue
            # with a warehouse of its own, another project may have published the table
            tables = self.tables()
            if (self._spark and not self._is_on_another_machine) or table in tables:
                build = json.loads(journal.read_text())["batch"]["build"]
                published = f"{table}__published_{build}"  # while other rows are held
                if published in tables:
                    assert self.mirror(table) == self.relation(published), table
                elif not (self.landing_zone / TableFolder(self.schema, table).held).exists():
                    assert self.mirror(table) == self.relation(table), table

    def assert_tidy(self) -> None:
        """Nothing is left on the scratch pad, and no table of a run in Spark."""
        assert not list(self.landing_zone.glob("_scratchPad/*"))
        kinds = "|".join((NEXT, *ROLES_OF_ROWS))
        assert not [table for table in self.tables() if re.search(f"__({kinds})_", table)]
        self._found |= {""} if self._spark else set()

    def drop_schemas(self, pattern: str) -> None:
        """Drop schemas with all that is in them; `*` in a pattern stands for anything."""
        for (schema,) in self.sql(f"show schemas like '{pattern}'"):
            if self.file_format == "iceberg":  # its catalogs drop only empty schemas
                for kind in ("view", "table"):
                    for found in self.sql(f"show {kind}s in `{schema}`"):
                        self.sql(f"drop {kind} `{schema}`.{quoted(found[1])}")
            self.sql(f"drop schema `{schema}` cascade")

    def go_to_another_machine(self) -> None:
        """Leave everything behind but the project, its landing zone and the mirrored tables."""
        self.drop_schemas(f"{self.schema}*")
        self._is_on_another_machine = True

    def tables(self) -> list[str]:
        """Return the tables of the schema, or the folders that are left of them."""
        if self._spark is None:
            return [path.name for path in (self.path / ".spark" / "warehouse").glob("*/*")]
        if not self.sql(f"show schemas like '{self.schema}'"):
            return []
        return [row["tableName"] for row in self.sql(f"show tables in {self.schema}")]

    def state_of_zone(self) -> Any:
        """All files of the landing zone."""
        files = sorted(path for path in self.landing_zone.rglob("*") if path.is_file())
        return {str(path): (path.stat().st_mtime_ns, path.read_bytes()) for path in files}

    def state(self, table: str = "orders") -> Any:
        """All that must stay as it is when nothing is published."""
        return self.state_of_zone(), self.relation(table)


def mirrored_rows(landing_zone: Path, schema: str, table: str) -> Counter[Row]:
    """Return the rows of the mirrored table, after all published files have been applied."""
    report = Replicator(landing_zone).replicate(schema, table)
    assert report, f"{table} was not published"
    assert not report.note, report.note
    mirrored = DeltaTable(landing_zone.parents[1] / "Tables" / schema / table)
    return Counter(canonical(row.items()) for row in content(mirrored).to_pylist())


def relation_rows(spark: SparkSession, schema: str, table: str) -> Counter[Row]:
    """Return the rows of a relation, with complex values as JSON."""
    relation = ".".join(f"`{name}`" for name in (*schema.split("."), table))
    # a session of its own on a server remembers the files that were there
    spark.catalog.refreshTable(relation)
    columns = [_landed(field) for field in spark.table(relation).schema]
    rows = spark.sql(f"select {', '.join(columns)} from {relation}").collect()
    return Counter(canonical(row.asDict().items()) for row in rows)


def _landed(field: StructField) -> str:
    name = "`" + field.name.replace("`", "``") + "`"
    if field.dataType.typeName() in ("array", "map", "struct", "variant"):
        value = with_keys_as_text(field.dataType.simpleString(), name)
        return f"to_json({value}, {JSON_OPTIONS}) as {name}"
    if field.dataType.typeName() in ("geometry", "geography"):
        return f"st_asbinary({name}) as {name}"
    return name


def canonical(row: Iterable[tuple[str, Any]]) -> Row:
    """A row that equals another one only if all values do: NaN too, and -0.0 is not 0.0."""
    return tuple(sorted((name, _text(value)) for name, value in row if value is not None))


def _text(value: Any) -> str:
    if isinstance(value, dt.datetime):
        if value.tzinfo:
            value = value.astimezone(dt.timezone.utc).replace(tzinfo=None)
        return str(value.isoformat())
    if isinstance(value, dt.time):  # Delta has none
        return f"str {value.isoformat(timespec='microseconds')}"
    if isinstance(value, (bytes, bytearray)):
        return f"bytes {bytes(value).hex()}"
    return f"{type(value).__name__} {value}"
