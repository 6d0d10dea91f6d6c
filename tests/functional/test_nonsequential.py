"""Files without numbers, and rows that are upserts by default: each switch for itself."""

from __future__ import annotations

import json
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.functional.project import Project
from tests.variants import some

SWITCHES: dict[str, dict[str, str]] = {
    "both": {"file_detection": "last_update_time", "default_row_marker": "upsert"},
    "upserts": {"default_row_marker": "upsert"},
    "times": {"file_detection": "last_update_time"},
    "neither": {},
}


def publish(project: Project, sql: str, **options: Any) -> None:
    for name, switches in SWITCHES.items():
        project.model(sql, name, unique_key="id", **switches, **options)
    project.run()
    for name in SWITCHES:
        project.assert_mirrored(name)


@pytest.mark.needs(local="OneLake has no request for a file's time")
def test_all_combinations_of_the_specification_are_published(project: Project) -> None:
    publish(project, "select id, 'a' as v from range(4)")
    publish(project, "select id, if(id = 1, 'b', 'a') as v from range(5)")
    publish(project, "select id, if(id = 1, 'c', 'a') as v from range(1, 5)")

    for name, switches in SWITCHES.items():
        _, upserts, deletes = project.files(name)
        marked = ["__rowMarker__" in pq.read_schema(file).names for file in (upserts, deletes)]
        assert marked == ["default_row_marker" not in switches, True], name
        numbered = [len(file.name) == len(f"{1:020d}.parquet") for file in project.files(name)]
        assert set(numbered) == {"file_detection" not in switches}, name


@pytest.mark.needs(local="OneLake has no request for a file's time")
@pytest.mark.parametrize("landing_format", some(["parquet", "csv"]))
def test_files_of_a_batch_are_applied_in_their_order_by_time(
    project: Project, landing_format: str
) -> None:
    """Deletes are in the first files, rows with the same content in the last."""
    sql = "select id, sha2(concat(id, '{}'), 512) as s from range({}, {})"
    options = {
        "unique_key": "id",
        "target_file_size": "200kb",
        "landing_format": landing_format,
        **SWITCHES["both"],
    }
    for word, start in (("a", 0), ("b", 3000)):
        project.model(sql.format(word, start, start + 9000), **options)
        response = project.run()
        assert response["files_written"] > 1
        project.assert_mirrored()
    times = [file.stat().st_mtime_ns for file in project.files()]
    assert times == sorted(set(times))
    project.model(sql.format("b", 3000, 12000), unique_key="id", landing_format=landing_format)
    response = project.run()
    assert (response["publication"], response["first_file"]) == (
        "rebuild",
        f"{1:020d}.{landing_format}",
    )
    assert json.loads((project.folder() / "_metadata.json").read_text())["keyColumns"] == ["id"]
    project.assert_mirrored()
