"""The type in which a column lands, by its type in Spark, and its SQL there and back."""

from __future__ import annotations

import pytest
from dbt_common.exceptions import CompilationError

from dbt.adapters.openmirroring.landing_zone.batch import MirroredColumn, TableDefinition
from dbt.adapters.openmirroring.node.plan import published_columns
from dbt.adapters.openmirroring.spark.relation import OpenMirroringColumn
from dbt.adapters.openmirroring.types.columns import (
    LandingColumn,
    json_text,
    json_value,
    landing_columns,
)
from dbt.adapters.openmirroring.types.parsed import sql_of

NAME, SQL = "it's `odd`", "`it's ``odd```"


def column(dtype: str) -> LandingColumn:
    return LandingColumn.of(OpenMirroringColumn(NAME, dtype))


AS_TEXT = ("string", "cast({} as string)", "cast({} as {})")
AS_UTC = (
    "timestamp",
    "timestamp_micros(cast(cast(cast({} - timestamp_ntz'1970-01-01 00:00:00' "
    "as interval second) as decimal(20, 6)) * 1000000 as bigint))",
    "timestamp_ntz'1970-01-01 00:00:00' + cast(cast(cast(unix_micros({}) as decimal(20, 0)) "
    "/ 1000000 as decimal(20, 6)) as interval second)",
)
# types, the type in which they land, and the SQL of a value there, and back from it
LANDED: dict[tuple[str, ...], tuple[str, str, str]] = {
    (
        *("boolean", "tinyint", "smallint", "int", "bigint", "float", "double"),
        *("string", "binary", "date", "timestamp"),
        *("decimal(10,0)", "decimal(38,18)", "time(0)", "time(6)"),
    ): ("", "{}", "{}"),
    ("char(3)", "VARCHAR(10)", "string collate UTF8_LCASE", "string collate de_CI"): AS_TEXT,
    ("timestamp_ntz", "TIMESTAMP_NTZ"): AS_UTC,
    ("geometry(4326)",): ("binary", "st_asbinary({})", "st_geomfromwkb({})"),
    ("geography(OGC:CRS84)",): ("binary", "st_asbinary({})", "st_geogfromwkb({})"),
}


@pytest.mark.parametrize(
    ("dtype", "landed"), [(dtype, landed) for types, landed in LANDED.items() for dtype in types]
)
def test_values_land_and_come_back(dtype: str, landed: tuple[str, str, str]) -> None:
    landing = column(dtype)
    type_, there, back = landed

    assert landing.dtype == dtype
    assert landing.landed_type == (type_ or dtype)
    assert landing.landed() == there.format(SQL)
    assert landing.landed("latest") == there.format(f"latest.{SQL}")
    mirrored = f"cast({SQL} as {sql_of(type_ or dtype)})"
    assert landing.mirrored() == mirrored
    assert landing.restored() == back.format(mirrored, dtype)


@pytest.mark.parametrize(
    "dtype", ["array<int>", "map<date,array<int>>", "Struct<A:int,B:struct<c:date>>", "variant"]
)
def test_complex_values_land_as_json(dtype: str) -> None:
    landing = column(dtype)

    assert landing.landed_type == "string"
    assert landing.landed() == json_text(dtype, SQL)
    assert landing.landed("latest") == json_text(dtype, f"latest.{SQL}")
    assert landing.restored() == json_value(dtype, f"cast({SQL} as string)")


@pytest.mark.parametrize("dtype", ["float", "double"])
def test_only_these_types_have_two_zeros(dtype: str) -> None:
    assert column(dtype).is_float
    assert not column("decimal(10,2)").is_float
    assert not column(f"array<{dtype}>").is_float


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


def test_a_complex_type_that_is_not_known_is_refused() -> None:
    landing = column("map<date,something new>")

    with pytest.raises(CompilationError) as error:
        landing.landed()

    keys = f"The keys of the maps in the column {SQL} cannot be written as JSON"
    assert keys in str(error.value)
    assert f"to_json({SQL})" in str(error.value)
    with pytest.raises(CompilationError, match="cannot be restored from JSON"):
        landing.restored()


def test_columns_land_in_their_order_and_are_as_they_were_published() -> None:
    found = landing_columns(
        [OpenMirroringColumn("b", "date"), OpenMirroringColumn("a", "char(1)")]
    )
    definition = TableDefinition((MirroredColumn("a", "int", "string"),), (), "parquet")

    assert found == [
        LandingColumn("b", "date", "date"),
        LandingColumn("a", "char(1)", "string"),
    ]
    assert published_columns(definition) == [LandingColumn("a", "int", "string")]
