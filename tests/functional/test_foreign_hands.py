"""Changes by others to a mirrored table, the message of the next run, and the way out.

All tables are in one project, and each is done something to: so a few runs show all. What is seen
without Spark is shown by unit tests, e.g. `test_table_files.py`.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.openmirroring.landing_zone.publisher import Publication
from tests.functional.project import Project
from tests.functional.test_operations import kill_before

# in each step a row more, and all rows changed
MODEL = "select id, 'v{{ var(\"step\") }}' as name from range(2 + {{ var('step') }})"


@dataclass(frozen=True)
class Table:
    """A table that was published twice: as #1 and #2."""

    project: Project
    name: str

    @property
    def folder(self) -> Path:
        return self.project.folder(self.name)

    @property
    def journal(self) -> Path:
        return self.folder / "_journal.json"

    @property
    def scratch(self) -> Path:
        return self.project.landing_zone / "_scratchPad" / f"{self.project.schema}.{self.name}"

    @property
    def manifest(self) -> Path:
        return self.scratch / "manifest.json"

    @property
    def staged(self) -> Path:
        """The only file of a batch that is committed and not published."""
        (file,) = self.scratch.glob("*/rows/*.parquet")
        return file

    def file(self, number: int) -> Path:
        return self.folder / f"{number:020d}.parquet"

    def sql(self, statement: str) -> None:
        self.project.sql(statement.format(f"{self.project.schema}.{self.name}"))

    def state(self) -> Any:
        """All that must stay as it is; what no manifest speaks of may go."""
        folders = (self.folder, self.scratch) if self.manifest.exists() else (self.folder,)
        paths = (path for folder in folders for path in folder.rglob("*"))
        files = [path for path in paths if path.is_file()]
        found = self.name in self.project.tables()
        rows = self.project.relation(self.name) if found else None
        return sorted((str(path), path.read_bytes()) for path in files), rows


def replace_relation(table: Table) -> None:
    table.sql("drop table {}")
    table.sql("create table {} using parquet as select id, 'x' as name from range(3)")


def delete_folder(table: Table) -> None:
    shutil.rmtree(table.folder)


def delete_manifest(table: Table) -> None:
    table.manifest.unlink()


def delete_both(table: Table) -> None:
    table.manifest.unlink()
    shutil.rmtree(table.folder, ignore_errors=True)


def full_refresh(*tables: Table) -> None:
    names = [table.name for table in tables]
    arguments = ["--full-refresh", "--select", *names, "--vars", "step: 2"]
    tables[0].project.run(*arguments, command="build")


def rebuild(table: Table) -> None:
    name = f"{{table: {table.project.schema}.{table.name}}}"
    arguments = ["--args", name, "--vars", "step: 2"]
    assert table.project.dbt("run-operation", "mirror_rebuild", *arguments)


@dataclass(frozen=True)
class Case:
    """A change, and what the next run does about it.

    Args:
        says: what the message has; or all of it, if the run repairs the table by itself
        way_out: from a refusal, after which the node runs again. Until then, nothing is changed.
            For `full_refresh`, all tables are run together
        pending: when a run was killed that was to publish #2: before it did `publish`, or after
            all files were `renamed`
    """

    done: Callable[[Table], object]
    says: tuple[str, ...]
    way_out: Callable[[Table], object] | None = None
    pending: str = ""


CASES: dict[str, Case] = {
    "last_file_deleted": Case(
        lambda t: t.file(2).unlink(),
        ("has no file with number 2", "mirror_rebuild"),
        rebuild,
    ),
    "journal_lost": Case(
        lambda t: t.journal.unlink(),
        ("has no _journal.json", "its journal is lost", "delete the folder"),
        delete_folder,
    ),
    # of a killed run
    "manifest_lost": Case(delete_manifest, ("+2 ~2 -0 · #2",), pending="publish"),
    "manifest_lost_when_half_done": Case(
        delete_manifest, ("has a file with number 2",), full_refresh, pending="renamed"
    ),
    "staged_file_deleted": Case(
        lambda t: t.staged.unlink(),
        ("is gone, or not as it was written", "manifest.json and run again"),
        delete_manifest,
        pending="publish",
    ),
    "staged_file_deleted_and_no_more_tried": Case(
        lambda t: t.staged.unlink(),
        ("is gone, or not as it was written", "`dbt build --full-refresh --select"),
        full_refresh,
        pending="publish",
    ),
    "folder_of_what_is_pending_removed": Case(
        delete_folder,
        ("continues batch", "_journal.json is gone", "run again to publish a full load"),
        delete_both,
        pending="publish",
    ),
    # Spark
    "snapshot_dropped": Case(
        lambda t: t.sql("drop table {}"),
        ("no baseline", "--full-refresh"),
        full_refresh,
    ),
    "relation_replaced": Case(replace_relation, ("no baseline", "--full-refresh"), full_refresh),
    "rows_inserted": Case(
        lambda t: t.sql("insert into {} values (3, 'v2'), (77, 'x')"),
        ("somebody else has written to the table", "a hook has", "mirror_rebuild"),
        rebuild,
    ),
    "rows_truncated": Case(
        lambda t: t.sql("truncate table {}"),
        ("somebody else has written to the table", "a hook has"),
        full_refresh,
    ),
}


@dataclass
class Outcome:
    """A table after the run that follows the change, and after the run after the way out."""

    before: Any
    after: Any
    status: str
    message: str


@pytest.fixture(scope="module")
def project(
    new_project: Callable[[Path], Project],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Project]:
    created = new_project(tmp_path_factory.mktemp("foreign_hands"))
    for name in CASES:
        created.model(MODEL, name, unique_key="id")
    yield created
    created.drop_schemas(created.schema)


@pytest.fixture(scope="module")
def outcomes(project: Project) -> dict[str, Outcome]:
    tables = {name: Table(project, name) for name in CASES}
    kinds = {
        kind: [name for name, case in CASES.items() if case.pending == kind]
        for kind in ("", "publish", "renamed")
    }
    project.run("--vars", "step: 0")
    project.run("--vars", "step: 1", "--select", *kinds[""])
    # with dbt's cache, the second command would recover what the first one has left
    arguments = ("--vars", "step: 1", "--no-populate-cache", "--select")
    kill_before(project, "publish", *arguments, *kinds["publish"])
    kill_before(project, "record", *arguments, *kinds["renamed"])
    found = {}
    for name, case in CASES.items():
        case.done(tables[name])
    before = {name: table.state() for name, table in tables.items()}

    project.dbt("run", "--vars", "step: 2")

    for name, result in project.results().items():
        after = tables[name].state()
        found[name] = Outcome(before[name], after, result["status"], result["message"])
    refused = [(tables[name], case) for name, case in CASES.items() if case.way_out]
    full_refresh(*(table for table, case in refused if case.way_out is full_refresh))
    for table, case in refused:
        if case.way_out and case.way_out is not full_refresh:
            case.way_out(table)
    project.run("--vars", "step: 3")
    return found


@pytest.mark.parametrize("name", CASES)
def test_changes_by_others_are_repaired_or_refused(
    outcomes: dict[str, Outcome], project: Project, name: str
) -> None:
    case, outcome = CASES[name], outcomes[name]
    if not case.way_out:
        assert (outcome.status, outcome.message) == ("success", *case.says)
    else:
        assert outcome.status == "error"
        for part in case.says:
            assert part in outcome.message
        if case.way_out is full_refresh:
            assert f"`dbt build --full-refresh --select {name}`" in outcome.message
            assert name != "rows_truncated" or "mirror_rebuild" not in outcome.message
        elif case.way_out is rebuild:
            arguments = f"--args '{{table: {project.schema}.{name}}}'"
            assert f"`dbt run-operation mirror_rebuild {arguments}`" in outcome.message
        assert outcome.after == outcome.before
    # after the way out
    project.assert_mirrored(name)
    assert len(project.relation(name)) == 5


@pytest.mark.needs(session="the folder is on the machine of the server")
def test_a_table_whose_folder_is_gone_is_never_read_as_an_empty_one(
    new_project: Callable[[Path], Project], tmp_path: Path, file_format: str
) -> None:
    if file_format == "iceberg":
        pytest.skip("Spark cannot even list such a table, or drop it")
    project = new_project(tmp_path)
    project.model(MODEL, unique_key="id", max_deleted="50%")
    project.model("select * from {{ ref('orders') }}", "seen", materialized="view")
    project.model("select * from {{ ref('seen') }}", "items", unique_key="id")
    project.model(MODEL, "other")
    project.run("--vars", "step: 3")
    described = project.sql(f"describe extended {project.schema}.orders")
    [found] = [row["data_type"] for row in described if row["col_name"] == "Location"]
    location = Path(found.removeprefix("file:"))
    location.rename(tmp_path / "away")
    before = project.files(), project.files("items")
    kept = f"The folder {location} is gone, with all rows that Spark has of"

    # the node itself, and one that reads it through a view
    message = project.fail("--vars", "step: 3")
    assert message.count(kept) == 1
    assert kept in project.fail("--select", "items", "--vars", "step: 3")
    with project.dry_run():
        assert kept in project.fail("--select", "items", "--vars", "step: 3")
    assert not project.dbt("run-operation", "mirror_rebuild", "--args", "{table: orders}")
    assert (project.files(), project.files("items")) == before
    project.run("--select", "other", "--vars", "step: 3")

    # one way out
    (tmp_path / "away").rename(location)
    project.run("--vars", "step: 3")
    assert project.results()["orders"]["message"] == "unchanged · #1"

    # and the other
    shutil.rmtree(location)
    project.run("--full-refresh", "--select", "orders", "--vars", "step: 3")
    project.run("--vars", "step: 4")
    for table in ("orders", "items"):
        project.assert_mirrored(table)
        assert len(project.relation(table)) == 6


def test_records_tell_nothing_of_the_code_of_the_user(
    new_project: Callable[[Path], Project], tmp_path: Path
) -> None:
    project = new_project(tmp_path)
    project.model(MODEL, unique_key="id", post_hook="select 'not for others'")
    kill_before(project, "publish", "--vars", "step: 2")
    table = Table(project, "orders")
    manifest = table.manifest.read_text()
    project.run("--vars", "step: 2")

    assert "not for others" not in manifest + table.journal.read_text()


UPDATED, ADDED, DROPPED, LOST, HELD = "updated", "added", "dropped", "lost", "held"


def kill_before_taking(project: Project, *arguments: str) -> None:
    """Run the project, and have nothing done once a table is to take its changes in place."""
    advance = "dbt.adapters.openmirroring.node.advance"
    with (
        patch(f"{advance}.take_in_place", side_effect=DbtRuntimeError("killed")),
        patch(f"{advance}.TakenPart.is_open", return_value=False),
        patch.object(Publication, "close", lambda self: self._lock.close()),
    ):
        project.fail(*arguments)


def test_a_hand_between_a_kill_and_the_next_run_is_never_taken_for_the_batch(
    new_project: Callable[[Path], Project], tmp_path: Path, file_format: str
) -> None:
    if file_format != "delta":
        pytest.skip("only a table with versions takes its changes in place")
    project = new_project(tmp_path)
    project.target["replicate"] = True
    project.write_project()
    rows = "select id, 'v{{ var(\"step\") }}' as name from range({{ var('step') }}, 2)"
    for name in (UPDATED, DROPPED, LOST):
        project.model(rows, name, materialized="incremental", unique_key="id")
    project.model(rows, ADDED, materialized="incremental")
    project.model(MODEL, HELD, unique_key="id", publish="on_request")
    tables = {name: Table(project, name) for name in (UPDATED, ADDED, DROPPED, LOST, HELD)}
    project.run("--vars", "step: 0")
    publish_held = ("run-operation", "mirror_publish", "--vars", "step: 1")
    assert project.dbt(*publish_held)
    project.run("--select", HELD, "--vars", "step: 1")
    with (
        patch.object(Publication, "publish", side_effect=DbtRuntimeError("killed")),
        patch.object(Publication, "close", lambda self: self._lock.close()),
    ):
        assert not project.dbt(*publish_held)
    kill_before_taking(project, "--exclude", HELD, "--no-populate-cache", "--vars", "step: 1")

    tables[UPDATED].sql("update {} set name = 'by hand' where id = 0")
    tables[ADDED].sql("insert into {} values (7, 'by hand')")
    tables[DROPPED].sql("drop table {}")
    tables[HELD].sql("drop table {}")
    for name in (LOST, HELD):
        tables[name].staged.unlink()
    project.dbt("run", "--vars", "step: 1")

    told = {name: result["message"] for name, result in project.results().items()}
    for name in (UPDATED, ADDED):
        assert "brings the rows that were published back" in told[name]
    assert "set `restore_baseline: true` in the target" in told[DROPPED]
    for name in (LOST, HELD):
        assert "manifest.json and run again" in told[name]
    kept = [name for name in project.tables() if name.startswith(f"{HELD}__published_")]
    assert len(kept) == 1, "the only copy of the rows that were published last"

    for name in (UPDATED, ADDED, DROPPED):
        arguments = ("--args", f"{{table: {project.schema}.{name}}}", "--vars", "step: 1")
        assert project.dbt("run-operation", "mirror_restore", *arguments)
    for name in (LOST, HELD):
        delete_manifest(tables[name])
    project.run("--vars", "step: 1")
    assert project.dbt(*publish_held)
    for name in tables:
        project.assert_mirrored(name)
