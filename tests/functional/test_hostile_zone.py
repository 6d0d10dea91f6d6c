"""A landing zone with hostile tables beside those of a project, as its user sees it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.functional.project import Project
from tests.hostile_tables import contents, land_forty, outside
from tests.variants import some

GOOD = ("a", "b", "c", "d")


def publish(project: Project, rows: int) -> None:
    for name in GOOD:
        project.model(f"select id, '{name}' as name from range({rows})", name, unique_key="id")
    assert project.dbt("run"), project.results()


@pytest.mark.local("links and pipes are for file systems")
def test_forty_hostile_tables_stop_none_of_four_good_ones(
    project: Project, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    publish(project, 3)
    elsewhere = outside(tmp_path / "elsewhere")
    kept = contents(elsewhere)
    schema = project.folder().parent
    hostile = [path for path, _ in land_forty(schema, elsewhere)]
    # a batch that somebody has left for one of them
    scratch = project.landing_zone / "_scratchPad" / f"{project.schema}.{hostile[0].name}"
    scratch.mkdir(parents=True)
    os.mkfifo(scratch / "manifest.json")

    publish(project, 5)

    capsys.readouterr()
    assert project.dbt("run-operation", "mirror_status")
    told = capsys.readouterr().out.splitlines()
    states = dict(line.split()[:2] for line in told[1:])
    assert [states[f"{project.schema}.{name}"] for name in GOOD] == ["published"] * 4
    for operation in ("mirror_recover", "mirror_drop_orphans"):
        assert project.dbt("run-operation", operation), operation
    assert not project.dbt("run-operation", "mirror_replicate"), "forty have failed"
    for name in GOOD:
        assert len(project.relation(name)) == 5
        assert project.mirror(name) == project.relation(name)
    assert contents(elsewhere) == kept


@pytest.mark.local("links and pipes are for file systems")
@pytest.mark.parametrize("record", some(["_journal.json", "_metadata.json", "_ProcessedFiles"]))
@pytest.mark.parametrize("kind", some(["link", "pipe"]))
def test_a_link_or_pipe_in_the_way_of_a_table_is_an_error_of_that_table(
    project: Project,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    record: str,
    kind: str,
) -> None:
    publish(project, 3)
    elsewhere = outside(tmp_path / "elsewhere")
    kept = contents(elsewhere)
    path = project.folder("a") / record
    path.unlink(missing_ok=True)
    if kind == "link":
        target = "processed" if record == "_ProcessedFiles" else "record.json"
        path.symlink_to(elsewhere / target)
    else:
        os.mkfifo(path)
    for name in GOOD:
        project.model(f"select id, '{name}' as name from range(5)", name, unique_key="id")

    assert f"is a {kind}" in project.fail()

    statuses = {name: result["status"] for name, result in project.results().items()}
    assert statuses == {"a": "error", "b": "success", "c": "success", "d": "success"}
    for name in GOOD[1:]:
        project.assert_mirrored(name)
    capsys.readouterr()
    project.dbt("run-operation", "mirror_status")
    states = dict(line.split()[:2] for line in capsys.readouterr().out.splitlines()[1:])
    assert [states[f"{project.schema}.{name}"] for name in GOOD] == ["blocked"] + ["published"] * 3
    assert contents(elsewhere) == kept

    path.unlink()
    if record == "_journal.json":
        shutil.rmtree(project.folder("a"))
    assert project.dbt("run"), project.results()
    project.assert_mirrored("a")
