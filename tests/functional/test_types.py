"""Every type of Spark: how it lands, and that each of its values is told apart and restored."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.functional.project import Project
from tests.functional.typed_tables import (
    PLACES,
    SCALARS,
    TYPES,
    docs_name,
    is_refused,
    key_values,
    one_of,
    rows,
    types_at,
)

PAGE = Path(__file__).parents[2] / "docs" / "changes.md"


@pytest.fixture
def project(project: Project) -> Project:
    settings(project, **{"spark.sql.session.timeZone": "Europe/Berlin"})
    return project


def settings(project: Project, **values: str) -> None:
    project.target["server_side_parameters"] = values
    project.write_project()


@pytest.mark.core
def test_the_table_in_the_docs_has_these_types() -> None:
    section = PAGE.read_text().partition("## What lands")[2].partition("\n## ")[0]
    found = re.findall(r"^\| (.+?) \| (.+?) \| (.+?) \|$", section, re.MULTILINE)
    told = {
        name.split("(")[0]: (parquet, delimited)
        for names, parquet, delimited in found[1:]
        for name in names.split(", ")
    }

    assert told.keys() == {docs_name(name) for name in TYPES}
    for name, (_, parquet, delimited) in TYPES.items():
        in_parquet, in_text = told[docs_name(name)]
        assert ("error" in in_parquet) == is_refused(parquet), name
        assert ("error: " in in_text) == is_refused(delimited), name
        assert is_refused(delimited) or delimited in in_text, name


@pytest.mark.needs(parquet="other formats do not have all of Spark's types")
@pytest.mark.core
def test_every_type_lands_as_the_table_says_or_is_refused_with_a_cast(
    project: Project,
) -> None:
    refused = {}
    for number, landing_format in enumerate(("parquet", "csv"), start=1):
        for name, type_ in TYPES.items():
            if is_refused(type_[number]):
                model = f"{landing_format}_{re.sub(r'[^a-z]+', '_', name)}"
                refused[model] = (name, type_[number])
                sql = f"select 1 as id, {type_.values[0]} as `{name}`"
                project.model(sql, model, landing_format=landing_format)
    in_text = {name: t.delimited for name, t in TYPES.items() if not is_refused(t.delimited)}
    landed = ", ".join(f"{TYPES[name].values[0]} as `{name}`" for name in in_text)
    project.model(f"select 1 as id, {landed}", landing_format="csv")

    assert not project.dbt("run")

    for model, (name, cast) in refused.items():
        message = project.results()[model]["message"]
        assert f"`{name}`" in message
        assert cast in message
        assert not project.folder(model).exists()
    metadata = json.loads((project.folder() / "_metadata.json").read_text())
    declared = {c["Name"]: c["DataType"] for c in metadata["SchemaDefinition"]["Columns"]}
    assert declared == {"id": "Int32", **in_text}
    project.assert_mirrored()


# the configuration of tables, and the places; what is within others lands as JSON in all of them
KINDS: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "keyed": ({"unique_key": "id"}, tuple(PLACES)),
    "keyless": ({}, ("column", "deep")),
    "text": ({"unique_key": "id", "landing_format": "csv"}, ("column", "deep")),
}


@pytest.mark.needs(
    local="the replicator applies landing zones on this machine",
    pyspark="the mirrored tables are on this machine",
)
@pytest.mark.parametrize("kind", KINDS)
def test_every_value_at_every_place_is_told_apart_and_restored(
    project: Project, kind: str
) -> None:
    others = {
        "spark.sql.session.timeZone": "Europe/Berlin",
        # dates of the mirrored table are of today's calendar, whatever others read from files
        "spark.sql.parquet.datetimeRebaseModeInRead": "LEGACY",
        # what TIMESTAMP means in SQL, a timestamp_ltz otherwise
        "spark.sql.timestampType": "TIMESTAMP_NTZ",
    }
    if project.file_format == "iceberg":
        # 1.12 cannot read flat columns alone beside variants in arrays or maps otherwise
        others["spark.sql.iceberg.vectorization.enabled"] = "false"
    project.target |= {"replicate": True, "restore_baseline": True}
    settings(project, **others)
    config, places = KINDS[kind]
    types = {
        place: types_at(place, project.file_format, in_text=kind == "text") for place in places
    }
    for place, found in types.items():
        project.model(rows(place, found), place, **config)
    project.run()
    before = {place: (project.relation(place), described(project, place)) for place in places}
    for place in places:
        project.assert_mirrored(place)

    project.go_to_another_machine()
    project.run()

    assert published(project) == dict.fromkeys(places, ("unchanged", 0, 0))
    for place in places:
        assert (project.relation(place), described(project, place)) == before[place]
        sql = rows(place, types[place], step=1)
        if kind == "keyless":  # rows that are gone would be a rebuild
            sql = f"{rows(place, types[place])} union all {sql}"
        project.model(sql, place, **config)

    project.run()

    for place, (publication, inserted, updated) in published(project).items():
        all_values = sum(map(len, types[place].values()))
        assert (publication, inserted + updated) == ("changes", all_values), place
        project.assert_mirrored(place)


def described(project: Project, table: str) -> list[tuple[str, str]]:
    found = project.sql(f"describe {project.schema}.{table}")
    return [(row["col_name"], row["data_type"]) for row in found]


def published(project: Project) -> dict[str, tuple[str, int, int]]:
    responses = {name: r["adapter_response"] for name, r in project.results().items()}
    return {
        name: (r["publication"], r["rows_inserted"], r["rows_updated"])
        for name, r in responses.items()
    }


def test_every_value_can_be_that_of_a_key(project: Project) -> None:
    """A row has another value in one column of its key, and the first ones in the others."""
    types = {name: key_values(name) for name in types_of_keys(project)}
    keys = [
        f"({column}, {number})"
        for column, values in enumerate(types.values())
        for number in range(1, len(values))
    ]
    columns = ", ".join(
        f"{one_of(values, f'if(place = {n}, number, 0)')} as `{name}`"
        for n, (name, values) in enumerate(types.items())
    )
    for step in (0, 1):
        chosen = ["(0, 0)", *(key for n, key in enumerate(keys) if n % 3 != step)]
        project.model(
            f"select {columns}, {step} as v from values {', '.join(chosen)} as t(place, number)",
            unique_key=list(types),
        )
        response = project.run()
        project.assert_mirrored()

    inserted, deleted, kept = (len(keys[n::3]) for n in range(3))
    counts = [response[f"rows_{kind}"] for kind in ("inserted", "updated", "deleted")]
    assert counts == [inserted, kept + 1, deleted]


def test_every_value_can_be_that_of_a_partition(project: Project) -> None:
    types = {
        name: [*TYPES[name].values[:9], "null"]
        for name in types_of_keys(project)
        if name != "binary" and "collate" not in name
    }
    for step in (0, 1):
        columns = ", ".join(
            f"{one_of(values, f'(id + {step}) % {len(values)}')} as `{name}`"
            for name, values in types.items()
        )
        sql = f"select id, {columns} from range(10)"
        project.model(sql, unique_key="id", partition_by=list(types))

        assert project.run()["publication"] == ("changes" if step else "initial")

        project.assert_mirrored()


def types_of_keys(project: Project) -> list[str]:
    return [name for name in types_at("array", project.file_format) if name in SCALARS]


def test_nulls_that_move_from_one_column_to_another_are_changes(project: Project) -> None:
    for sql in ("select 1 as id, null + 5 as a, 5 as b", "select 1 as id, 5 as a, null + 5 as b"):
        project.model(sql, unique_key="id")
        response = project.run()
        project.assert_mirrored()
    assert response["rows_updated"] == 1


DAY = "date'2024-01-01'"
INSTANT = "timestamp'2024-01-01 00:00:00.000001Z'"
# the keys of maps as Spark SQL, and as JSON
KEYS = {
    "'a'": "a",
    "1": "1",
    "1.50BD": "1.50",
    "1.5D": "1.5",
    "true": "true",
    DAY: "2024-01-01",
    INSTANT: "2024-01-01T00:00:00.000001Z",
    "timestamp_ntz'2024-03-31 02:30:00'": "2024-03-31T02:30:00.000000",
    "x'fbff'": "+/8=",
    f"named_struct('a b', {DAY}, 'n', cast(null as int))": '{"a b":"2024-01-01","n":null}',
    f"array({INSTANT})": '["2024-01-01T00:00:00.000001Z"]',
    "interval '1-2' year to month": "INTERVAL '1-2' YEAR TO MONTH",
}
# complex values as Spark SQL, and as JSON
COMPLEX: dict[str, object] = {f"map({key}, 1)": {text: 1} for key, text in KEYS.items()} | {
    f"named_struct('at', {INSTANT}, 'n', null + 1)": {"at": KEYS[INSTANT], "n": None},
    f"array(map({DAY}, {DAY}), null)": [{"2024-01-01": "2024-01-01"}, None],
    f"map(array({DAY}), named_struct('a`b', map({DAY}, 1), \"f'g\", null + 1))": {
        '["2024-01-01"]': {"a`b": {"2024-01-01": 1}, "f'g": None}
    },
    f"named_struct('s', if(id < 0, named_struct('m', map({DAY}, 1)), null))": {"s": None},
    f"if(id < 0, map({DAY}, 1), null)": None,
}


@pytest.mark.needs(parquet="other formats have no intervals")
def test_json_has_keys_of_maps_as_it_has_values(project: Project) -> None:
    settings(
        project,
        **{
            "spark.sql.session.timeZone": "Asia/Tokyo",
            "spark.sql.parser.escapedStringLiterals": "true",
            "spark.sql.legacy.timeParserPolicy": "LEGACY",
        },
    )
    columns = ", ".join(f"{value} as c{n}" for n, value in enumerate(COMPLEX))
    project.model(f"select id, {columns} from range(1)", unique_key="id")

    project.run()

    ((*values,),) = project.mirror()
    expected = {
        f"c{n}": f"str {json.dumps(value, separators=(',', ':'))}"
        for n, value in enumerate(COMPLEX.values())
        if value is not None
    }
    assert dict(values) == {"id": "int 0", **expected}
    project.assert_mirrored()
    assert project.run()["publication"] == "unchanged"
