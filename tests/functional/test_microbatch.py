"""Batches of microbatch models, whose partitions may not be those of the batches."""

from __future__ import annotations

from typing import Any

import pytest

from tests.functional.project import Project

UTC, BERLIN = "UTC", "Europe/Berlin"
DAY: dict[str, Any] = {"batch_size": "day", "begin": "2024-01-01"}
ALL = ("--event-time-start", "2024-01-01", "--event-time-end", "2024-01-03")

# the last hour of a day in UTC is the first one of the next day in Berlin
TIMES = ("2024-01-01 10:00:00", "2024-01-01 23:30:00", "2024-01-02 10:00:00")


def events(
    project: Project,
    *times: str,
    filtered: bool = True,
    kind: str = "timestamp",
    name: str = "events",
) -> None:
    """Write the source of the model: an event a time, with a number."""
    zone = "Z" if kind == "timestamp" else ""
    rows = ", ".join(f"({n}, {kind}'{at}{zone}')" for n, at in enumerate(times, 1))
    config: dict[str, Any] = {"event_time": "at"} if filtered else {}
    project.model(f"select * from values {rows} as t(id, at)", name, **config)


def batches(
    project: Project,
    zone: str = UTC,
    columns: str = "*",
    name: str = "orders",
    source: str = "events",
    **config: Any,
) -> None:
    project.target["server_side_parameters"] = {"spark.sql.session.timeZone": zone}
    project.write_project()
    project.model(
        f"select {columns}, to_date(at) as day from {{{{ ref('{source}') }}}}",
        name,
        materialized="incremental",
        incremental_strategy="microbatch",
        event_time="at",
        partition_by="day",
        **config,
    )


def ids(project: Project, name: str = "orders") -> list[int]:
    mirrored = project.mirror(name).elements()
    return sorted(int(dict(row)["id"].removeprefix("int ")) for row in mirrored)


@pytest.mark.usefixtures("each_size")
def test_a_batch_of_a_day_leaves_rows_of_the_days_beside_it(project: Project) -> None:
    kinds = ("timestamp", "timestamp_ntz")
    names = ("timestamp_keyed", "timestamp_ntz_keyless")
    for kind, name in zip(kinds, names, strict=True):
        keyed = {"unique_key": "id"} if name.endswith("keyed") else {}
        events(project, *TIMES, kind=kind, name=kind)
        batches(project, BERLIN, **DAY, name=name, source=kind, **keyed)

    for _ in range(2):  # a batch that runs again replaces its rows
        project.run(*ALL)

        for name in names:
            assert ids(project, name) == [1, 2, 3]
            project.assert_mirrored(name)
    for kind in kinds:
        events(project, "2024-01-01 11:00:00", "2024-01-01 23:45:00", kind=kind, name=kind)
    project.run(*ALL[:3], "2024-01-02")
    for name in names:
        assert ids(project, name) == [1, 2, 3]
        project.assert_mirrored(name)


def test_a_batch_of_an_hour_leaves_the_other_hours_of_its_partition(project: Project) -> None:
    events(project, "2024-01-01 00:10:00", "2024-01-01 01:10:00", "2024-01-01 01:50:00")
    batches(project, batch_size="hour", begin="2024-01-01T00:00:00")

    period = (*ALL[:3], "2024-01-01T02:00:00")
    with project.dry_run():
        project.run(*period)
    assert project.tables() == []
    assert not project.landing_zone.exists()
    project.run(*period)

    assert ids(project) == [1, 2, 3]
    project.assert_mirrored()


def test_a_model_of_a_source_without_a_time_replaces_whole_partitions(project: Project) -> None:
    events(project, *TIMES, filtered=False)
    batches(project, BERLIN, **DAY)

    project.run(*ALL)

    assert ids(project) == [1, 2, 3]
    project.assert_mirrored()


def test_a_row_that_moves_to_another_batch_of_its_partition_is_replaced(project: Project) -> None:
    events(project, *TIMES[:2])
    batches(project, BERLIN, **DAY, unique_key="id")
    project.run(*ALL)
    events(project, TIMES[0], TIMES[2])

    project.run("--event-time-start", "2024-01-02", *ALL[2:])

    found = {dict(row)["id"]: dict(row)["at"] for row in project.mirror()}
    assert found == {"int 1": "2024-01-01T10:00:00", "int 2": "2024-01-02T10:00:00"}
    project.assert_mirrored()


def test_a_model_without_its_event_time_is_refused(project: Project) -> None:
    events(project, *TIMES)
    batches(project, BERLIN, "id", **DAY)

    assert not project.dbt("run", *ALL)

    assert not project.folder().exists()
    batches(project, BERLIN, **DAY)
    project.run(*ALL)
    assert ids(project) == [1, 2, 3]
    project.assert_mirrored()
    # which it loses later
    batches(project, BERLIN, "id", **DAY, on_schema_change="sync_all_columns")
    before = project.state()
    assert not project.dbt("run", *ALL)
    assert project.state() == before
