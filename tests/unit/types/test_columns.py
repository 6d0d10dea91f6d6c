"""The type in which a column lands, by its type in Spark."""

from __future__ import annotations

import pytest
from dbt_common.exceptions import CompilationError

from dbt.adapters.openmirroring.landing_zone.batch import MirroredColumn, TableDefinition
from dbt.adapters.openmirroring.node.definition import published_columns
from dbt.adapters.openmirroring.spark.relation import OpenMirroringColumn
from dbt.adapters.openmirroring.types.columns import LandingColumn, landing_columns
from dbt.adapters.openmirroring.types.json_text import json_text

NAME, SQL = "it's `odd`", "`it's ``odd```"


def column(dtype: str) -> LandingColumn:
    return LandingColumn.of(OpenMirroringColumn(NAME, dtype))


@pytest.mark.parametrize(
    "dtype",
    [
        *("boolean", "tinyint", "smallint", "int", "bigint", "float", "double"),
        *("string", "binary", "date", "timestamp"),
        *("decimal(10,0)", "decimal(38,18)", "time(0)", "time(6)"),
    ],
)
def test_most_types_land_as_they_are(dtype: str) -> None:
    landing = column(dtype)

    assert landing.landed_type == dtype
    assert landing.landed() == SQL
    assert landing.landed("latest") == f"latest.{SQL}"


@pytest.mark.parametrize(
    "dtype", ["char(3)", "varchar(10)", "string collate UTF8_LCASE", "string collate de_CI"]
)
def test_text_of_any_kind_lands_as_a_string(dtype: str) -> None:
    landing = column(dtype)

    assert landing.landed_type == "string"
    assert landing.landed() == f"cast({SQL} as string)"
    assert landing.landed("latest") == f"cast(latest.{SQL} as string)"


@pytest.mark.parametrize(
    "dtype",
    [
        "array<int>",
        "map<string,int>",
        "map<date,array<int>>",
        "struct<a:int,B:struct<c:date>>",
        "variant",
    ],
)
def test_complex_values_land_as_json(dtype: str) -> None:
    landing = column(dtype)

    assert landing.landed_type == "string"
    assert landing.landed() == json_text(dtype, SQL)
    assert landing.landed("latest") == json_text(dtype, f"latest.{SQL}")
    assert landing.landed().startswith("to_json(")


def test_a_timestamp_without_a_time_zone_lands_as_that_instant_in_utc() -> None:
    landing = column("timestamp_ntz")

    assert landing.landed_type == "timestamp"
    assert landing.landed("latest") == (
        f"timestamp_micros(cast(cast(cast(latest.{SQL} - timestamp_ntz'1970-01-01 00:00:00' "
        "as interval second) as decimal(20, 6)) * 1000000 as bigint))"
    )


@pytest.mark.parametrize("dtype", ["geometry(4326)", "geography(OGC:CRS84)"])
def test_shapes_land_as_well_known_binary(dtype: str) -> None:
    landing = column(dtype)

    assert landing.landed_type == "binary"
    assert landing.landed("latest") == f"st_asbinary(latest.{SQL})"


@pytest.mark.parametrize("dtype", ["float", "double"])
def test_only_these_types_have_two_zeros(dtype: str) -> None:
    assert column(dtype).is_float
    assert not column("decimal(10,2)").is_float
    assert not column(f"array<{dtype}>").is_float


@pytest.mark.parametrize("dtype", ["VARCHAR(10)", "Struct<A:int>", "TIMESTAMP_NTZ"])
def test_a_type_may_be_spelled_in_any_case(dtype: str) -> None:
    landing = column(dtype)

    assert landing.dtype == dtype
    assert landing.landed_type == column(dtype.lower()).landed_type
    assert landing.landed() != SQL


@pytest.mark.parametrize(
    "dtype",
    [
        *("void", "interval", "interval day to second", "interval year to month"),
        *("timestamp_ltz(9)", "object", "", "date[]"),
    ],
)
def test_other_types_are_refused_with_a_way_out(dtype: str) -> None:
    with pytest.raises(CompilationError) as error:
        column(dtype)

    assert f"The column {SQL} has the type {dtype}, which cannot be mirrored" in str(error.value)
    assert f"cast({SQL} as string)" in str(error.value)


def test_a_map_whose_keys_cannot_be_text_is_refused_with_a_way_out() -> None:
    landing = column("map<date,something new>")

    with pytest.raises(CompilationError) as error:
        landing.landed()

    assert f"The keys of the maps in the column {SQL} cannot be written as JSON" in str(
        error.value
    )
    assert f"to_json({SQL})" in str(error.value)


def test_columns_land_in_their_order() -> None:
    found = landing_columns(
        [OpenMirroringColumn("b", "date"), OpenMirroringColumn("a", "char(1)")]
    )

    assert found == [
        LandingColumn("b", "date", "date"),
        LandingColumn("a", "char(1)", "string"),
    ]


def test_published_columns_are_as_they_were_published() -> None:
    definition = TableDefinition((MirroredColumn("a", "int", "string"),), (), "parquet")

    assert published_columns(definition) == [LandingColumn("a", "int", "string")]
