"""A landing zone with hostile tables beside those of a project, as its user sees it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.functional.project import Project
from tests.hostile_tables import contents, land_forty, outside

GOOD = ("a", "b", "c", "d")


def write(project: Project, rows: int) -> None:
    for name in GOOD:
        project.model(f"select id, '{name}' as name from range({rows})", name, unique_key="id")


@pytest.mark.needs(local="links and pipes are for file systems")
def test_forty_hostile_tables_stop_none_of_four_good_ones_and_a_link_stops_its_own_table(
    project: Project, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(project, 3)
    project.run()
    elsewhere = outside(tmp_path / "elsewhere")
    kept = contents(elsewhere)
    schema = project.folder().parent
    hostile = [path for path, _ in land_forty(schema, elsewhere)]
    # a batch that somebody has left for one of them
    scratch = project.landing_zone / "_scratchPad" / f"{project.schema}.{hostile[0].name}"
    scratch.mkdir(parents=True)
    os.mkfifo(scratch / "manifest.json")
    link = project.folder("a") / "_metadata.json"
    link.unlink()
    link.symlink_to(elsewhere / "record.json")
    write(project, 5)

    def states() -> list[str]:
        capsys.readouterr()
        assert project.dbt("run-operation", "mirror_status")
        told = dict(line.split()[:2] for line in capsys.readouterr().out.splitlines()[1:])
        return [told[f"{project.schema}.{name}"] for name in GOOD]

    assert "is a link" in project.fail()

    statuses = {name: result["status"] for name, result in project.results().items()}
    assert statuses == {"a": "error", "b": "success", "c": "success", "d": "success"}
    assert states() == ["blocked", *["published"] * 3]
    link.unlink()
    project.run()
    assert states() == ["published"] * 4
    for operation in ("mirror_recover", "mirror_drop_orphans"):
        assert project.dbt("run-operation", operation), operation
    assert not project.dbt("run-operation", "mirror_replicate"), "forty have failed"
    for name in GOOD:
        assert len(project.relation(name)) == 5
        assert project.mirror(name) == project.relation(name)
    assert contents(elsewhere) == kept
