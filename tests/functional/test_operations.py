"""`dbt run-operation`, with the mirrored tables of a project."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import yaml
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.openmirroring.landing_zone.publisher import Publication
from dbt.adapters.openmirroring.landing_zone.records import Journal
from dbt.adapters.openmirroring.spark.session import SessionHandle
from tests.functional.project import Project
from tests.report_parser import Parsed
from tests.variants import some

ORDERS = "select * from values (1, 'a'), (2, 'b') as t(id, name)"
TIME = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$")
DROP = ("mirror_drop_orphans", "--args", "{dry_run: false}")


class Printed:
    """The lines that an operation prints."""

    def __init__(self, project: Project, capsys: pytest.CaptureFixture[str]) -> None:
        self._project = project
        self._capsys = capsys

    def __call__(self, *operation: str, succeeds: bool = True) -> list[str]:
        self._capsys.readouterr()
        assert self._project.dbt("run-operation", *operation) == succeeds
        return self._capsys.readouterr().out.splitlines()

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


def kill_before(project: Project, step: str) -> None:
    """Run the project, and have nothing done from a step of the publication on."""
    with (
        patch.object(Publication, step, side_effect=DbtRuntimeError("killed")),
        patch.object(Publication, "close", lambda self: self._lock.close()),
    ):
        project.fail()


@pytest.mark.local("Fabric has something else to say of a table")
@pytest.mark.core
def test_the_status_tells_what_was_published(project: Project, printed: Printed) -> None:
    project.model(ORDERS, unique_key="id")
    project.model("select 1 as id", "customers")
    project.model("select 1 as id", "local", mirror=False)
    project.model("select 1 as id", "view", materialized="view")
    project.write("seeds/regions.csv", "id\n1\n")
    project.run()
    project.model(f"{ORDERS} where id = 1 union all select 3, 'c'", unique_key="id")
    project.model("select 1 as id", "later")
    project.run("--select", "orders")

    lines = printed("mirror_status")

    assert lines[0].split() == [
        *("mirrored", "table", "state", "last", "rows", "publication", "published", "(UTC)"),
        "changes",
    ]
    start = lines[0].index("state")
    assert all(line[start:].startswith(("published", "not published")) for line in lines[1:])
    assert printed.status() == {
        "customers": ["published", "#1", "1", "initial", "+1 ~0 -0"],
        "later": ["not published"],
        "orders": ["published", "#2", "2", "changes", "+1 ~0 -1"],
        "regions": ["not published"],
    }


@pytest.mark.core
def test_the_history_lists_what_was_published_the_last_first(
    project: Project, printed: Printed
) -> None:
    project.model(ORDERS, unique_key="id")
    project.model("select 1 as id", "customers")
    project.run()
    project.model(f"{ORDERS} where id = 1 union all select 3, 'c'", unique_key="id")
    project.run()
    project.run("--full-refresh", "--select", "orders")

    headline, *lines = printed("mirror_history", "--args", "{table: orders, limit: 2}")

    assert headline.split()[:4] == ["mirrored", "table", "published", "(UTC)"]
    told = [(line.split()[3], " ".join(line.split()[4:7])) for line in lines]
    assert told == [("rebuild", "+2 ~0 -0"), ("changes", "+1 ~0 -1")]
    assert lines[0].endswith("--full-refresh")
    assert [line.split()[0].rpartition(".")[2] for line in printed("mirror_history")[1:]] == [
        "customers",
        *(["orders"] * 3),
    ]


def test_an_argument_that_is_nothing_is_refused(project: Project, printed: Printed) -> None:
    """The shell makes nothing of a variable that is not set."""
    project.model(ORDERS, unique_key="id", publish="on_request")
    project.run()

    told = " ".join(printed("mirror_publish", "--args", "{table: ''}", succeeds=False))

    assert "`table` of mirror_publish is ''. It must be a name that is not empty." in told
    assert not project.files()


@pytest.mark.core
def test_the_report_shows_each_table_with_its_batches(project: Project, printed: Printed) -> None:
    project.model(ORDERS, unique_key="id")
    project.model("select 1 as id", "customers")
    project.run()
    project.model(f"{ORDERS} where id = 1 union all select 3, 'c'", unique_key="id")
    project.model("select 1 as id", "later")
    project.run("--select", "orders")
    before = project.state()

    with patch.object(SessionHandle, "execute", side_effect=AssertionError):
        (line,) = printed("mirror_report")

    path = project.path / "target" / "mirror_report.html"
    assert line == f"Report on 3 tables: {path}"
    tables = Parsed(path.read_text(encoding="utf-8")).tables
    assert {table.name.rpartition(".")[2]: table.publications for table in tables} == {
        "customers": ["initial"],
        "later": [],
        "orders": ["changes", "initial"],
    }
    assert project.state() == before


def test_the_status_asks_no_spark_and_changes_nothing(project: Project, printed: Printed) -> None:
    project.model(ORDERS, unique_key="id")
    project.run()
    before = project.state()

    with patch.object(SessionHandle, "execute", side_effect=AssertionError):
        printed("mirror_status")

    assert project.state() == before


@pytest.mark.local("Fabric has something else to say of a table")
def test_a_check_fails_if_a_table_is_held_and_prints_json_alone(
    project: Project, printed: Printed
) -> None:
    project.model(ORDERS, unique_key="id")
    project.run()
    fine = printed("mirror_check")
    project.model(f"{ORDERS} where id = 1", unique_key="id", publish="on_request")
    project.run()

    def in_json(operation: str, succeeds: bool = True) -> Any:
        """What a quiet command prints, without the error that follows if it fails."""
        asked = (operation, "--quiet", "--args", "{format: json}")
        first, *others = printed(*asked, succeeds=succeeds)
        assert succeeds == (not others)
        return json.loads(first)

    with patch.object(SessionHandle, "execute", side_effect=AssertionError):
        told = " ".join(printed("mirror_check", succeeds=False))
        found = in_json("mirror_check", succeeds=False)
        status = in_json("mirror_status")
        past = in_json("mirror_history")

    table = f"{project.schema}.orders"
    assert fine == ["1 mirrored table checked, all fine. No service has reported on them."]
    assert f"{table}: held: until mirror_publish" in told
    assert found["version"] == 1
    assert not found["ok"]
    assert [(each["table"], each["problem"]) for each in found["problems"]] == [(table, "held")]
    assert found["tables"] == status["tables"]
    assert [each["state"] for each in status["tables"]] == ["held"]
    assert [each["publication"] for each in past["batches"]] == ["initial"]


@pytest.mark.local("Fabric has something else to say of a table")
def test_the_status_tells_what_the_replicator_says(project: Project, printed: Printed) -> None:
    project.model(ORDERS, unique_key="id")
    project.model(ORDERS, "customers", unique_key="id")
    project.run()
    project.mirror("customers")
    bad = project.folder() / f"{2:020d}.parquet"
    bad.write_bytes(b"")
    printed("mirror_replicate", succeeds=False)
    bad.unlink()

    status = printed.status()

    assert status["customers"][-1] == "Replicating"
    assert status["orders"][-2] == "Failed"
    assert "zero bytes" in status["orders"][-1]


@pytest.mark.local("Fabric has something else to say of a table")
def test_the_status_tells_what_the_next_run_cannot_publish(
    project: Project, printed: Printed
) -> None:
    project.model(ORDERS, "foreign")
    project.model(ORDERS, "lost")
    project.run()
    (project.folder("lost") / "_journal.json").unlink()
    record = project.folder("foreign") / "_journal.json"
    journal = Journal.from_json(record.read_bytes(), "here")
    owner = replace(journal.batch.owner, project="another")
    theirs = replace(journal, batch=replace(journal.batch, owner=owner))
    record.write_bytes(theirs.to_json())
    shutil.copytree(project.folder("foreign"), project.folder("theirs"))
    project.model(ORDERS, "dotted", alias="a.b")

    status = printed.status()

    assert {table: cells[0] for table, cells in status.items()} == {
        "foreign": "blocked",
        "lost": "blocked",
        "a.b": "blocked",
    }
    assert "'another'" in status["foreign"][-1]
    assert "_journal.json" in status["lost"][-1]
    shutil.rmtree(project.landing_zone)


@pytest.mark.local("Fabric has something else to say of a table")
@pytest.mark.core
def test_orphans_are_listed_and_dropped_when_asked_for(project: Project, printed: Printed) -> None:
    for name in ("orders", "removed", "renamed", "unmirrored"):
        project.model(ORDERS, name, unique_key="id")
    project.run()
    (project.path / "models/removed.sql").unlink()
    project.model(ORDERS, "renamed", unique_key="id", alias="new_name")
    project.model(ORDERS, "unmirrored", mirror=False)
    before = project.state()

    status = printed.status()
    listed = printed("mirror_drop_orphans")

    assert status["removed"] == ["orphan", *status["removed"][1:5], "model.shop.removed is gone"]
    assert status["renamed"][-1] == f"model.shop.renamed is {project.schema}.new_name now"
    assert status["unmirrored"][-1] == "model.shop.unmirrored is not mirrored any more"
    assert [line.split()[0].rpartition(".")[2] for line in listed[1:4]] == [
        *("removed", "renamed", "unmirrored")
    ]
    assert "dry_run: false" in listed[4]
    assert project.state() == before

    dropped = printed(*DROP)

    assert f"{project.schema}.removed, {project.schema}.renamed" in dropped[-1]
    assert sorted(path.name for path in project.folder().parent.iterdir()) == ["orders"]
    assert {"removed", "renamed", "unmirrored"} <= set(project.tables())
    assert printed(*DROP) == ["There are no orphans."]
    project.assert_tidy()


@pytest.mark.local("another project has another server")
def test_folders_of_others_are_never_dropped(
    project: Project, printed: Printed, new_project: Callable[[Path], Project], tmp_path: Path
) -> None:
    other = new_project(tmp_path / "other")
    other.name = "other"
    other.landing_zone = project.landing_zone
    other.target |= {"landing_zone": str(project.landing_zone), "schema": project.schema}
    other.schema = project.schema
    other.write_project()
    other.model(ORDERS, "theirs", unique_key="id")
    other.run()
    project.model(ORDERS, unique_key="id")
    project.model(ORDERS, "ours")
    project.run()
    (project.path / "models/orders.sql").unlink()
    shutil.copytree(project.folder(), project.folder("nobodys"))
    (project.folder("nobodys") / "_journal.json").unlink()

    assert list(printed.status()) == ["orders", "ours"]
    printed(*DROP)

    left = sorted(path.name for path in project.folder().parent.iterdir())
    assert left == ["nobodys", "ours", "theirs"]


@pytest.mark.local("Fabric has something else to say of a table")
def test_a_table_of_another_target_is_dropped_only_by_its_name(
    project: Project, printed: Printed
) -> None:
    """Two targets share the landing zone and the schema; a model is for one of them."""
    others = {"prod": dict(project.target), "local": project.target}
    outputs = {"shop": {"target": "local", "outputs": others}}
    project.write("profiles.yml", yaml.safe_dump(outputs))
    project.model(ORDERS)
    project.model(ORDERS, "monthly")
    settings = {"models": {"shop": {"monthly": {"+enabled": "{{ target.name == 'prod' }}"}}}}
    project.write_project(**settings)
    project.write("profiles.yml", yaml.safe_dump(outputs))
    project.run("--target", "prod")
    project.model(f"{ORDERS} where id = 1")
    project.run()
    monthly = f"{project.schema}.monthly"

    listed = printed(*DROP)

    told = "the target 'prod' published it last; here, model.shop.monthly is gone"
    state, *_, note = printed.status()["monthly"]
    assert (state, note) == ("elsewhere", told)
    assert any(line.startswith(monthly) and told in line for line in listed)
    assert project.folder("monthly").exists()
    printed(*DROP[:2], f"{{dry_run: false, table: {monthly}}}")
    assert not project.folder("monthly").exists()
    project.assert_mirrored()


def test_an_orphan_that_another_run_publishes_is_not_dropped(
    project: Project, printed: Printed
) -> None:
    project.model(ORDERS, unique_key="id")
    project.model(ORDERS, "customers")
    project.run()
    (project.path / "models/orders.sql").unlink()
    before = project.state()

    with project.storage.lock(f"_scratchPad/{project.schema}.orders"):
        printed(*DROP, succeeds=False)

    assert project.state() == before


@pytest.mark.local("Fabric has something else to say of a table")
def test_the_pending_batch_of_an_orphan_is_withdrawn(project: Project, printed: Printed) -> None:
    project.model(ORDERS, unique_key="id")
    project.model(ORDERS, "customers")
    project.run()
    project.model(f"{ORDERS} where id = 1", unique_key="id")
    kill_before(project, "publish")
    (project.path / "models/orders.sql").unlink()

    assert printed.status()["orders"][-2:] == ["+0 ~0 -1 · #2", "model.shop.orders is gone"]
    printed(*DROP)

    assert not project.folder().exists()
    assert not (project.landing_zone / "_scratchPad").exists()


@pytest.mark.parametrize("step", some(["publish", "record", "complete"]))
def test_batches_of_a_killed_run_are_finished(
    project: Project, printed: Printed, step: str
) -> None:
    """Killed before the files were published, and after the snapshot was swapped."""
    keyed = {"unique_key": "id", "partition_by": "name"}
    project.model("select 1 as id, 'a' as name", **keyed)
    project.model("select 1 as id, 'a' as name", "gone", **keyed)
    project.run()
    for name in ("orders", "gone"):
        project.model(ORDERS, name, **keyed)
    kill_before(project, step)
    (project.path / "models/gone.sql").unlink()
    project.model("select not_computed", **keyed)

    assert printed.status()["orders"][0] == "unfinished"
    lines = printed("mirror_recover")

    assert [line.partition(".")[2] for line in lines] == [
        "gone: finished +1 ~0 -0 · #2",
        "orders: finished +1 ~0 -0 · #2",
    ]
    for table in ("orders", "gone"):
        project.assert_mirrored(table)
        assert len(project.relation(table)) == 2
    assert printed.status()["orders"][:2] == ["published", "#2"]
    assert printed("mirror_recover") == ["Nothing was unfinished."]


@pytest.mark.variant
def test_a_committed_batch_is_published_by_a_spark_without_its_rows(
    project: Project, printed: Printed
) -> None:
    project.model(ORDERS, unique_key="id")
    kill_before(project, "publish")
    for table in project.tables():
        project.sql(f"drop table {project.schema}.{table}")

    lines = printed("mirror_recover")

    assert "orders: finished initial" in "".join(lines)
    assert len(project.files()) == 1
    assert "set `restore_snapshots: true`" in project.fail()
    project.run("--full-refresh")
    project.assert_mirrored()


def test_a_table_that_cannot_be_recovered_is_reported_and_the_others_are(
    project: Project, printed: Printed
) -> None:
    project.model(ORDERS, unique_key="id")
    project.model(ORDERS, "stuck", unique_key="id")
    kill_before(project, "publish")

    with project.storage.lock(f"_scratchPad/{project.schema}.stuck"):
        lines = printed("mirror_recover", succeeds=False)

    assert [line.partition(".")[2] for line in lines if "finished" in line] == [
        "orders: finished initial +2 · #1"
    ]
    assert printed.status()["stuck"][0] == "unfinished"
    printed("mirror_recover")
    project.assert_mirrored("stuck")


WATERMARK = """
    {{% set last = run_query('select max(id) from ' ~ this).rows[0][0]
        if execute and is_incremental() else -1 %}}
    select id from range({}) where id > {{{{ last }}}}
"""
APPEND = {"materialized": "incremental", "incremental_strategy": "append"}


@pytest.mark.parametrize("step", some(["publish", "record", "complete"]))
@pytest.mark.parametrize("command", some(["run", "build"]))
@pytest.mark.core
def test_a_command_recovers_before_it_compiles(project: Project, step: str, command: str) -> None:
    project.model(WATERMARK.format(3), **APPEND)
    project.model("select 1 as id", "gone", unique_key="id")
    project.run()
    project.model(WATERMARK.format(5), **APPEND)
    project.model(ORDERS, "gone", unique_key="id")
    kill_before(project, step)
    (project.path / "models/gone.sql").unlink()
    project.model(WATERMARK.format(6), **APPEND)
    before = project.state()

    for other in ("compile", "docs generate", "ls"):
        assert project.dbt(*other.split())
    assert project.state() == before, "these build nothing"
    assert project.run(command=command)["_message"] == "+1 ~0 -0 · #3"

    assert len(project.relation()) == project.relation().total() == 6
    project.assert_mirrored()
    project.assert_mirrored("gone")


@pytest.mark.core
def test_a_table_that_cannot_be_recovered_stops_only_its_own_node(project: Project) -> None:
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
        assert not project.dbt("run")
        statuses = {name: result["status"] for name, result in project.results().items()}
        assert statuses == {"orders": "success", "stuck": "error", "damaged": "error"}

    project.storage.write(manifest, content)
    project.run()
    for table in ("orders", "stuck", "damaged"):
        project.assert_mirrored(table)


@pytest.mark.session("of which statements are refused")
@pytest.mark.parquet("only a snapshot of files is renamed")
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


def test_only_the_relations_of_this_target_are_recovered(project: Project) -> None:
    """The relations of another target may be in another Spark."""
    project.model(ORDERS, unique_key="id")
    kill_before(project, "publish")
    project.name_schema(f"{project.schema}_other")
    project.run()
    project.assert_replicated()
    project.name_schema(project.schema.removesuffix("_other"))
    assert project.storage.list(f"_scratchPad/{project.schema}.orders")
    project.run()
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
    assert len(project.mirror()) == 3
    project.assert_mirrored()
    project.model("select 4 as id, 'c' as name", **options)
    assert project.run()["_message"] == "+1 ~0 -0 · #2"
    described = [row["col_name"] for row in project.sql(f"describe {project.schema}.orders")]
    assert "# Partition Information" in described


@pytest.mark.local("Fabric has something else to say of a table")
def test_the_history_of_a_dbt_snapshot_is_rebuilt(project: Project, printed: Printed) -> None:
    project.write(
        "snapshots/history.yml",
        "snapshots:\n  - name: history\n    relation: ref('source')\n"
        "    config: {unique_key: id, strategy: check, check_cols: [name], alias: past}\n",
    )
    for name in ("a", "b"):
        project.model(f"select 1 as id, '{name}' as name", "source", materialized="view")
        project.run(command="build")

    printed("mirror_rebuild", "--args", f"{{table: {project.schema}.past}}")

    # linked as they are, or written anew
    files = 1 if project.is_remote or project.file_format != "parquet" else 2
    assert printed.status()["past"] == ["published", f"#{files}", "2", "rebuild", "+2 ~0 -0"]
    assert len(project.files("past")) == files
    assert len(project.mirror("past")) == 2
    project.assert_mirrored("past")


def test_a_table_that_cannot_be_rebuilt_is_reported(project: Project, printed: Printed) -> None:
    project.model(ORDERS, unique_key="id")
    project.model(ORDERS, "later", unique_key="id")
    project.run("--select", "orders")
    before = project.state()

    unknown = printed("mirror_rebuild", "--args", "{table: nothing}", succeeds=False)
    missing = printed("mirror_rebuild", "--args", "{table: later}", succeeds=False)

    tables = f"{project.schema}.later, {project.schema}.orders"
    assert f"Its mirrored tables: {tables}." in " ".join(unknown)
    assert "nothing to publish" in " ".join(missing)
    assert project.state() == before
    project.assert_tidy()


@pytest.mark.local("it is about such a folder")
@pytest.mark.parametrize("operation", ["create_database", "start", "stop"])
def test_a_folder_of_this_machine_has_no_mirrored_database(
    project: Project, printed: Printed, operation: str
) -> None:
    project.model(ORDERS, unique_key="id")

    lines = printed(f"mirror_{operation}", succeeds=False)

    assert "belongs to no mirrored database" in " ".join(lines)
