"""Values on their way from Spark to Jinja, and as text in the next statement back to Spark."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from dbt.cli.main import dbtRunner

from tests.functional.project import Project

UTC, BERLIN, NEW_YORK = ZONES = ("UTC", "Europe/Berlin", "America/New_York")

# an instant in UTC, and its text in sessions of these zones
INSTANTS = (
    ("2024-07-01 12:00:00", "2024-07-01 12:00:00", "2024-07-01 14:00:00", "2024-07-01 08:00:00"),
    # Berlin has 02:30 twice on this day, and Spark reads it as the first
    ("2024-10-27 00:30:00", "2024-10-27 00:30:00", "2024-10-27 02:30:00", "2024-10-26 20:30:00"),
    (
        *("2024-10-27 01:30:00", "2024-10-27 01:30:00"),
        *("2024-10-27 02:30:00+01:00", "2024-10-26 21:30:00"),
    ),
    # and New York has 01:30 twice on this one
    (
        *("2024-11-03 06:30:00.5", "2024-11-03 06:30:00.500000"),
        *("2024-11-03 07:30:00.500000", "2024-11-03 01:30:00.500000-05:00"),
    ),
    # times in UTC that the other two do not have on these days
    ("2024-03-31 02:30:00", "2024-03-31 02:30:00", "2024-03-31 04:30:00", "2024-03-30 22:30:00"),
    ("2024-03-10 02:30:00", "2024-03-10 02:30:00", "2024-03-10 03:30:00", "2024-03-09 21:30:00"),
    (
        *("1582-10-10 12:34:56.789012", "1582-10-10 12:34:56.789012"),
        *("1582-10-10 13:28:24.789012", "1582-10-10 07:38:54.789012"),
    ),
    # Python's years are 1 to 9999
    ("0001-01-01 00:00:00", "0001-01-01 00:00:00", "0001-01-01 00:53:28", "0000-12-31 19:03:58"),
    ("9999-12-31 23:30:00", "9999-12-31 23:30:00", "+10000-01-01 00:30:00", "9999-12-31 18:30:00"),
    (
        *("-0044-03-15 12:00:00", "-0044-03-15 12:00:00"),
        *("-0044-03-15 12:53:28", "-0044-03-15 07:03:58"),
    ),
)

# a value in SQL, its text in Jinja, and how the next statement takes the text
VALUES = (
    ("timestamp_ntz'2024-03-31 02:30:00'", "2024-03-31 02:30:00", "timestamp_ntz'{}'"),
    ("timestamp_ntz'1582-10-10 00:00:00.5'", "1582-10-10 00:00:00.500000", "timestamp_ntz'{}'"),
    ("timestamp_ntz'+10000-01-01 00:00:00'", "+10000-01-01 00:00:00", "timestamp_ntz'{}'"),
    ("date'2024-07-01'", "2024-07-01", "date'{}'"),
    ("date'1582-10-10'", "1582-10-10", "date'{}'"),
    ("date'+10000-01-01'", "+10000-01-01", "date'{}'"),
    ("date'-0044-03-15'", "-0044-03-15", "date'{}'"),
    ("1.50BD", "1.50", "{}"),
    (
        "-12345678901234567890.123456789012345678BD",
        "-12345678901234567890.123456789012345678",
        "{}",
    ),
    ("cast(0 as decimal(38, 18))", "0E-18", "cast('{}' as decimal(38, 18))"),
    ("9007199254740993L", "9007199254740993", "{}"),
    ("double('1.0000000000000002')", "1.0000000000000002", "double('{}')"),
    ("double('4.9E-324')", "5E-324", "double('{}')"),
    ("double('-0.0')", "-0.0", "double('{}')"),
    ("double('-infinity')", "-Infinity", "double('{}')"),
    ("double('nan')", "NaN", "double('{}')"),
    # the digits that a comparison with the column needs
    ("float('1.1')", "1.100000023841858", "float('{}')"),
    ("true", "True", "{}"),
    ("'2024-01-01T00:00:00Z'", "2024-01-01T00:00:00Z", "'{}'"),
    ("'007'", "007", "'{}'"),
    ("'null'", "null", "'{}'"),
    ("''", "", "'{}'"),
    ("X'00FF61'", "00FF61", "X'{}'"),
    ("time'14:30:00.5'", "14:30:00.5", "time'{}'"),
    (
        "interval '-1 02:03:04.000005' day to second",
        "-1 02:03:04.000005",
        "interval '{}' day to second",
    ),
    ("interval '5' hour", "0 05:00:00", "cast(interval '{}' day to second as interval hour)"),
    ("interval '-1-2' year to month", "-1-2", "interval '{}' year to month"),
    ("interval '5' month", "0-5", "cast(interval '{}' year to month as interval month)"),
    ("make_interval(1, 2, 0, 3)", "1 years 2 months 3 days", "cast('{}' as interval)"),
    (
        """array('it''s', '"b"', null)""",
        r"""["it's","\"b\"",null]""",
        "from_json('{}', 'array<string>')",
    ),
    (
        "array(timestamp'2024-10-27 00:30:00Z', timestamp'2024-10-27 01:30:00Z')",
        '["2024-10-27T00:30:00.000000Z","2024-10-27T01:30:00.000000Z"]',
        "from_json('{}', 'array<timestamp>')",
    ),
    (
        "array(timestamp_ntz'1582-10-10 00:00:00')",
        '["1582-10-10T00:00:00.000000"]',
        "from_json('{}', 'array<timestamp_ntz>')",
    ),
    (
        "array(12345678901234567890.123456789012345678BD)",
        "[12345678901234567890.123456789012345678]",
        "from_json('{}', 'array<decimal(38,18)>')",
    ),
    ("array(double('nan'), double('-0.0'))", '["NaN",-0.0]', "from_json('{}', 'array<double>')"),
    ("array(X'00FF61')", '["AP9h"]', "from_json('{}', 'array<binary>')"),
    (
        "array(interval '1 02:03:04' day to second)",
        """["INTERVAL '1 02:03:04' DAY TO SECOND"]""",
        "from_json('{}', 'array<interval day to second>')",
    ),
    (
        "named_struct('a', 1, 'at', timestamp'2024-07-01 12:00:00.000001Z')",
        '{"a":1,"at":"2024-07-01T12:00:00.000001Z"}',
        "from_json('{}', 'struct<a:int,at:timestamp>')",
    ),
    ("map('k', date'1582-10-10')", '{"k":"1582-10-10"}', "from_json('{}', 'map<string,date>')"),
    (
        "map(date'1582-10-10', array(1))",
        '{"1582-10-10":[1]}',
        "from_json('{}', 'map<string,array<int>>')",
    ),
    ("""parse_json('{"a": 1.25, "b": null}')""", '{"a":1.25,"b":null}', "parse_json('{}')"),
)

# Spark compares no values of these, but their texts.
TEXT_ONLY = ("make_interval", "map", "parse_json")

# A query that says of each value which text a macro has read, and whether the text is the value.
MACRO = r"""
{% macro crossed(values, zone=none) %}
  {%- if execute -%}
  {%- do run_query("set time zone '" ~ zone ~ "'") if zone -%}
  {%- set columns = [] -%}
  {%- for value, _ in values -%}
    {%- do columns.append(value ~ ' as v' ~ loop.index) -%}
  {%- endfor -%}
  {%- set found = run_query('select ' ~ columns | join(', ')).rows[0].values() -%}
  {%- for value, back in values -%}
    {%- set text = found[loop.index0] | string | replace('\\', '\\\\') | replace("'", "\\'") -%}
    {%- set again = back.replace('{}', text) %}
    select {{ loop.index0 }} as id, '{{ text }}' as text,
    string({{ again }}) <=> string({{ value }})
    {{- ' and ' ~ again ~ ' <=> ' ~ value if not value.startswith(TEXT_ONLY) }} as is_same
    {{ 'union all' if not loop.last }}
  {%- endfor -%}
  {%- endif -%}
{% endmacro %}
""".replace("TEXT_ONLY", repr(TEXT_ONLY))


def values_in(zone: str) -> list[tuple[str, str, str]]:
    """Return all values, their texts in a session of a time zone, and how these are taken."""
    number = ZONES.index(zone)
    instants = (
        (f"timestamp'{instant}Z'", texts[number], "timestamp'{}'") for instant, *texts in INSTANTS
    )
    return [*instants, *VALUES]


def crossed(zone: str, set_zone: str | None = None) -> str:
    values = [(value, back) for value, _, back in values_in(zone)]
    return f"{{{{ crossed({values}, {set_zone!r}) }}}}"


@pytest.fixture(params=[pytest.param(BERLIN, marks=pytest.mark.slow), NEW_YORK])
def _zone_of_process(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, project: Project
) -> Iterator[None]:
    """Another one than Spark's, until the mirror is compared after a test."""
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("_zone_of_process")
def test_a_value_that_a_macro_reads_is_the_same_in_the_next_statement(project: Project) -> None:
    project.write("macros/crossed.sql", MACRO)
    project.target["server_side_parameters"] = {"spark.sql.session.timeZone": BERLIN}
    project.write_project()
    project.model(crossed(BERLIN), "in_profile")
    project.model(crossed(UTC, set_zone=UTC), "in_model")
    project.write(
        "models/in_hook.sql",
        "{{ config(materialized='table', pre_hook=\"set time zone 'America/New_York'\", "
        "post_hook='insert into {{ this }} {{ in_new_york() }}') }}"
        "select -1 as id, '' as text, true as is_same",
    )
    project.write(
        "macros/in_new_york.sql",
        f"{{% macro in_new_york() %}}{crossed(NEW_YORK)}{{% endmacro %}}",
    )

    project.run()

    for name, zone in {"in_profile": BERLIN, "in_model": UTC, "in_hook": NEW_YORK}.items():
        read = project.sql(f"select * from {project.schema}.{name} where id >= 0 order by id")
        assert [(row.text, row.is_same) for row in read] == [
            (text, True) for _, text, _ in values_in(zone)
        ]


@pytest.mark.usefixtures("_zone_of_process")
@pytest.mark.parametrize("zone", [UTC, BERLIN])
def test_rows_after_the_last_time_come_once_when_clocks_are_set_back(
    project: Project, zone: str
) -> None:
    """The last time is 02:00 twice: the first and the second one in Berlin."""
    project.target["server_side_parameters"] = {"spark.sql.session.timeZone": zone}
    project.write_project()
    project.model(
        "{% if execute and is_incremental() %}"
        "{% set last = run_query('select max(at) from ' ~ this).rows[0][0] %}"
        "{% endif %}"
        "select * from {{ ref('events') }}"
        "{% if is_incremental() %} where at > timestamp'{{ last }}'{% endif %}",
        materialized="incremental",
        incremental_strategy="append",
    )
    for hours in (3, 4, 5):
        project.model(
            "select id, timestampadd(hour, id, timestamp'2024-10-26 22:00:00Z') as at "
            f"from range({hours})",
            "events",
            materialized="view",
        )
        project.run()

    assert sorted(dict(row)["id"] for row in project.mirror().elements()) == [
        f"int {n}" for n in range(5)
    ]


UNIT_TEST = """
unit_tests:
- name: times_that_clocks_show_twice
  model: orders
  given:
  - input: ref('events')
    rows: &rows
    - {at: 2024-10-27 02:30:00+01:00}
    - {at: 2024-10-27 02:30:00}
    - {at: 2024-10-26 12:00:00}
  expect: {rows: *rows}
"""


@pytest.mark.usefixtures("_zone_of_process")
def test_dbt_compares_and_shows_times_as_spark_writes_them(project: Project) -> None:
    project.target["server_side_parameters"] = {"spark.sql.session.timeZone": BERLIN}
    project.write_project()
    project.model("select timestamp'2024-07-01 12:00:00Z' as at", "events")
    project.model("select at, string(at) as text from {{ ref('events') }}")
    project.write("models/orders.yml", UNIT_TEST)
    assert project.dbt("build")

    shown: Any = dbtRunner().invoke(project.arguments("show", "--select", "orders")).result

    [row] = shown.results[0].agate_table.rows
    assert (str(row["at"]), row["text"]) == ("2024-07-01 14:00:00", "2024-07-01 14:00:00")
