"""`dbt run-operation`, with the mirrored tables of a project."""

from __future__ import annotations

import json
import re
from typing import Any
from unittest.mock import patch

import pytest
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.openmirroring.landing_zone.publisher import Publication
from dbt.adapters.openmirroring.spark.session import SessionHandle
from tests.functional.project import Project
from tests.functional.test_custom_materialization import STRICT
from tests.report_parser import Parsed
from tests.variants import some

ORDERS = "select * from values (1, 'a'), (2, 'b') as t(id, name)"
TIME = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$")
DROP = ("mirror_drop_orphans", "--args", "{dry_run: false}")

# a materialization of the project that publishes
AUDITED = """
{% materialization audited, adapter='openmirroring' %}
  {{ return(mirror_materialization()) }}
{% endmaterialization %}
"""

of_this_machine = pytest.mark.needs(local="Fabric has something else to say of a table")


class Printed:
    """The lines that an operation prints."""

    def __init__(self, project: Project, capsys: pytest.CaptureFixture[str]) -> None:
        self._project = project
        self._capsys = capsys

    def __call__(self, *operation: str, succeeds: bool = True) -> list[str]:
        self._capsys.readouterr()
        assert self._project.dbt("run-operation", *operation) == succeeds
        return self._capsys.readouterr().out.splitlines()

    def json(self, operation: str, succeeds: bool = True) -> Any:
        """Return what a quiet command prints, without the error that follows if it fails."""
        first, *others = self(operation, "--quiet", "--args", "{format: json}", succeeds=succeeds)
        assert succeeds == (not others)
        return json.loads(first)

    def status(self) -> dict[str, list[str]]:
        """Return the line of `mirror_status` for each table, without empty cells and the time."""
        _, *lines = self("mirror_status")
        cells = [re.split(r"\s{2,}", line) for line in lines]
        return {
            table.removeprefix(f"{self._project.schema}."): [
                c for c in others if not TIME.match(c)
            ]
            for table, *others in cells
        }


@pytest.fixture
def printed(project: Project, capsys: pytest.CaptureFixture[str]) -> Printed:
    return Printed(project, capsys)


def kill_before(project: Project, step: str, *arguments: str) -> None:
    """Run the project, and have nothing done from a step of the publication on."""
    with (
        patch.object(Publication, step, side_effect=DbtRuntimeError("killed")),
        patch.object(Publication, "close", lambda self: self._lock.close()),
    ):
        project.fail(*arguments)


@of_this_machine
@pytest.mark.core
def test_status_and_history_tell_what_was_published(project: Project, printed: Printed) -> None:
    project.model(ORDERS, unique_key="id")
    project.model("select 1 as id", "customers")
    project.model("select 1 as id", "local", mirror=False)
    project.model("select 1 as id", "view", materialized="view")
    project.write("seeds/regions.csv", "id\n1\n")
    project.run()
    project.model(f"{ORDERS} where id = 1 union all select 3, 'c'", unique_key="id")
    project.model("select 1 as id", "later")
    project.run("--select", "orders")

    assert printed.status() == {
        "customers": ["published", "#1", "1", "initial", "+1 ~0 -0"],
        "later": ["not published"],
        "orders": ["published", "#2", "2", "changes", "+1 ~0 -1"],
        "regions": ["not published"],
    }

    project.run("--full-refresh", "--select", "orders")

    _, *lines = printed("mirror_history", "--args", "{table: orders, limit: 2}")
    told = [(line.split()[3], " ".join(line.split()[4:7])) for line in lines]
    assert told == [("rebuild", "+2 ~0 -0"), ("changes", "+1 ~0 -1")]
    assert lines[0].endswith("--full-refresh")
    _, *lines = printed("mirror_history")
    names = [line.split()[0].rpartition(".")[2] for line in lines]
    assert names == ["customers", *(["orders"] * 3)]


@of_this_machine
@pytest.mark.core
def test_operations_that_only_tell_ask_no_spark_and_change_nothing(
    project: Project, printed: Printed
) -> None:
    project.model(ORDERS, unique_key="id")
    project.run()
    fine = printed("mirror_check")
    project.model(f"{ORDERS} where id = 1", unique_key="id", publish="on_request")
    project.run()
    before = project.state()

    with patch.object(SessionHandle, "execute", side_effect=AssertionError):
        told = " ".join(printed("mirror_check", succeeds=False))
        found = printed.json("mirror_check", succeeds=False)
        status = printed.json("mirror_status")
        past = printed.json("mirror_history")
        written = printed("mirror_report")

    assert project.state() == before
    table = f"{project.schema}.orders"
    assert fine == [
        "1 mirrored table checked in the landing zone alone: no service has reported on them."
    ]
    assert f"{table}: held: until mirror_publish" in told
    assert not found["ok"]
    assert [(each["table"], each["problem"]) for each in found["problems"]] == [(table, "held")]
    assert found["tables"] == status["tables"]
    assert [each["state"] for each in status["tables"]] == ["held"]
    assert [each["publication"] for each in past["batches"]] == ["initial"]
    path = project.path / "target" / "mirror_report.html"
    assert written == [f"Report on 1 table: {path}"]
    (shown,) = Parsed(path.read_text(encoding="utf-8")).tables
    assert (shown.name, shown.publications) == (table, ["initial"])


@of_this_machine
@pytest.mark.core
def test_orphans_are_listed_and_dropped_when_asked_for(project: Project, printed: Printed) -> None:
    left = {
        "disabled": "disabled",
        "removed": "gone",
        "renamed": f"{project.schema}.new_name now",
        "unmirrored": "not mirrored any more",
        "viewed": "a view now",
    }
    project.write("macros/custom.sql", AUDITED)
    project.model(ORDERS, "audited", materialized="audited", unique_key="id")
    for name in ("orders", *left):
        project.model(ORDERS, name, unique_key="id")
    project.run(*STRICT)
    project.model(ORDERS, "disabled", enabled=False)
    (project.path / "models/removed.sql").unlink()
    project.model(ORDERS, "renamed", unique_key="id", alias="new_name")
    project.model(ORDERS, "unmirrored", mirror=False)
    project.model(ORDERS, "viewed", materialized="view")
    before = project.state()

    status = printed.status()
    told = project.stop(*STRICT)
    listed = printed(*re.findall(r"dbt run-operation (\w+)", told))

    assert status["removed"] == ["orphan", *status["removed"][1:5], "model.shop.removed is gone"]
    assert status["audited"][0] == "published"
    why = {name: f"model.shop.{name} is {what}" for name, what in left.items()}
    assert {name: status[name][-1] for name in left} == why
    folders = project.folder().parent
    paths = [f"{folders.name}/{name} ({each})" for name, each in why.items()]
    assert f"No node here publishes {', '.join(paths)}, so reports read old rows." in told
    assert [line.split()[0].rpartition(".")[2] for line in listed[1:6]] == [*left]
    assert "dry_run: false" in listed[6]
    assert project.state() == before

    with project.storage.lock(f"_scratchPad/{project.schema}.removed"):  # it is published now
        dropped = printed(*DROP, succeeds=False)

    names = ", ".join(f"{project.schema}.{name}" for name in left if name != "removed")
    assert any(line.startswith(f"Dropped {names}.") for line in dropped)
    kept = ["audited", "orders"]
    assert sorted(path.name for path in folders.iterdir()) == [*kept, "removed"]
    printed(*DROP)
    assert sorted(path.name for path in folders.iterdir()) == kept
    assert {*left} <= set(project.tables())
    assert printed(*DROP) == ["There are no orphans."]
    project.run(*STRICT)
    project.assert_tidy()


WATERMARK = """
    {{% set last = run_query('select max(id) from ' ~ this).rows[0][0]
        if execute and is_incremental() else -1 %}}
    select id from range({}) where id > {{{{ last }}}}
"""
APPEND = {"materialized": "incremental", "incremental_strategy": "append"}


@pytest.mark.parametrize("step", some(["publish", "record", "complete"]))
@pytest.mark.parametrize(
    "command", some([pytest.param("run", marks=pytest.mark.core), "mirror_recover", "build"], 2)
)
def test_what_a_killed_run_has_committed_is_finished_before_anything_is_compiled(
    project: Project, printed: Printed, step: str, command: str
) -> None:
    """Killed before the files were published, and after the snapshot was swapped."""
    gone = {"unique_key": "id", "partition_by": "name"}
    project.model(WATERMARK.format(3), **APPEND)
    project.model("select 1 as id, 'a' as name", "gone", **gone)
    project.run()
    project.model(WATERMARK.format(5), **APPEND)
    project.model(ORDERS, "gone", **gone)
    kill_before(project, step)
    (project.path / "models/gone.sql").unlink()
    project.model(WATERMARK.format(6), **APPEND)
    before = project.state()
    for other in ("compile", "docs generate", "ls"):
        assert project.dbt(*other.split())
    assert project.state() == before, "these build nothing"

    if command == "mirror_recover":
        assert printed.status()["orders"][0] == "unfinished"
        assert [line.partition(".")[2] for line in printed(command)] == [
            "gone: finished +1 ~0 -0 · #2",
            "orders: finished +2 ~0 -0 · #2",
        ]
        assert printed.status()["orders"][:2] == ["published", "#2"]
        assert printed(command) == ["Nothing was unfinished."]
        command = "run"
    assert project.run(command=command)["_message"] == "+1 ~0 -0 · #3"

    assert len(project.relation()) == project.relation().total() == 6
    project.assert_mirrored()
    project.assert_mirrored("gone")


@pytest.mark.core
def test_a_table_that_cannot_be_recovered_keeps_no_other_from_it(project: Project) -> None:
    project.model(WATERMARK.format(3), **APPEND)
    project.model(ORDERS, "stuck", unique_key="id")
    project.model(ORDERS, "damaged", unique_key="id")
    kill_before(project, "publish")
    scratch = f"_scratchPad/{project.schema}"
    manifest = f"{scratch}.damaged/manifest.json"
    content = project.storage.read(manifest)
    assert content
    project.storage.write(manifest, b"{}")

    with project.storage.lock(f"{scratch}.stuck"):
        project.fail()

    statuses = {name: result["status"] for name, result in project.results().items()}
    assert statuses == {"orders": "success", "stuck": "error", "damaged": "error"}
    assert project.mirror() == project.relation()
    assert not project.files("stuck")
    assert not project.files("damaged")
    project.storage.write(manifest, content)
    project.run()
    for table in ("orders", "stuck", "damaged"):
        project.assert_mirrored(table)


@pytest.mark.needs(session="of which statements are refused")
@pytest.mark.needs(parquet="only a snapshot of files is renamed")
def test_a_statement_that_fails_at_the_start_loses_nothing(project: Project) -> None:
    """dbt's cache takes a table for renamed before Spark has done it."""
    project.model(WATERMARK.format(3), **APPEND)
    project.run()
    project.model(WATERMARK.format(5), **APPEND)
    kill_before(project, "publish")
    execute = SessionHandle.execute
    refused: list[str] = []

    def refuse_once(self: SessionHandle, sql: str, *args: Any) -> Any:
        if "rename to" in sql and not refused:
            refused.append(sql)
            raise DbtRuntimeError("refused")
        return execute(self, sql, *args)

    with patch.object(SessionHandle, "execute", refuse_once):
        project.run()

    assert refused
    assert len(project.relation()) == project.relation().total() == 5
    project.assert_mirrored()


@pytest.mark.core
def test_a_table_is_rebuilt_from_what_spark_has(project: Project, printed: Printed) -> None:
    options = {"materialized": "incremental", "unique_key": "id", "partition_by": "name"}
    project.model(ORDERS, **options)
    project.run()
    project.model("select 3 as id, 'c' as name", **options)
    project.run()
    project.model("select not_computed", **options)

    lines = printed("mirror_rebuild", "--args", "{table: orders}")

    assert lines == [f"{project.schema}.orders: rebuild +3 · #1 · mirror_rebuild"]
    assert len(project.files()) == 1
    project.assert_mirrored()
    project.model("select 4 as id, 'c' as name", **options)
    assert project.run()["_message"] == "+1 ~0 -0 · #2"
    described = [row["col_name"] for row in project.sql(f"describe {project.schema}.orders")]
    assert "# Partition Information" in described
