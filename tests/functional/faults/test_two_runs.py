"""Two runs publish the same table, and one of them is killed."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path

from tests.functional.faults.fault import KILLED, Fault
from tests.functional.project import Project
from tests.functional.test_concurrency import KEYED, ROWS


def test_a_run_beside_one_that_is_killed_wins_or_stops_and_the_next_one_brings_all_together(
    project: Project,
    new_project: Callable[[Path], Project],
    tmp_path: Path,
    record_property: Callable[[str, object], None],
) -> None:
    """Two processes with one catalog and one landing zone; neither knows of the other."""
    twin = new_project(tmp_path / "twin")
    twin.schema = twin.target["schema"] = project.schema
    twin.target["landing_zone"] = str(project.landing_zone)
    twin.write_project()
    outcomes = []
    for n in count(1):
        for salt, one in enumerate((project, twin)):
            one.model(ROWS.format(salt=salt, first=n, end=60 + n), **KEYED)

        fault = Fault(3 * n, KILLED)
        succeeded = fault.during(
            project, "run", meanwhile=lambda: outcomes.append(twin.dbt("run"))
        )
        if not outcomes[-1]:
            message = str(twin.results()["orders"]["message"])
            assert "Another run" in message or "omebody else has published" in message, message
        elif not fault.happened and not succeeded:
            assert "nother run" in str(project.results()["orders"]["message"])

        last = twin if n % 2 else project
        last.run()
        last.landing_zone = project.landing_zone
        last.assert_mirrored()
        if not fault.happened and succeeded:
            break
    assert n > 8
    record_property("runs beside one that was killed", len(outcomes))
