from dataclasses import fields
from typing import Any

import pytest
from dbt_common.exceptions import CompilationError

from dbt.adapters.openmirroring.landing_zone.delimited import DelimitedText
from dbt.adapters.openmirroring.node.config import NodeConfig, OpenMirroringConfig
from dbt.adapters.openmirroring.node.other_options import EVERYWHERE, INCREMENTAL


def test_without_options_a_node_is_mirrored_with_the_defaults() -> None:
    assert NodeConfig.parse({"materialized": "table", "tags": [], "meta": {}}) == NodeConfig(
        unique_key=(),
        mirror=True,
        on_breaking_change="rebuild",
        insert_marker="upsert",
        landing_format="parquet",
        compression="zstd",
        target_file_size=134217728,
    )


@pytest.mark.parametrize("materialized", ["table", "incremental", "snapshot", "seed"])
def test_an_empty_option_is_none(materialized: str) -> None:
    names = {field.name for field in fields(OpenMirroringConfig)} | {"unique_key", "grants"}
    empty = dict.fromkeys({*names, *INCREMENTAL, *EVERYWHERE, "incremental_predicates"}, "")

    assert NodeConfig.parse({"materialized": materialized, **empty}) == NodeConfig()


@pytest.mark.parametrize(
    ("unique_key", "parsed"),
    [
        ("id", ("id",)),
        (["b", "a"], ("b", "a")),
        ("with space", ("with space",)),
        (["b", "a", "B", "a"], ("b", "a")),
        (None, ()),
        ("", ()),
        ([], ()),
    ],
)
def test_a_key_is_one_column_or_several_or_none(unique_key: Any, parsed: tuple[str, ...]) -> None:
    assert NodeConfig.parse({"unique_key": unique_key}).unique_key == parsed


@pytest.mark.parametrize(
    ("size", "parsed"), [("1kb", 1024), ("128mb", 2**27), ("2 GB", 2**31), (None, 2**27)]
)
def test_a_file_size_has_a_unit(size: str | None, parsed: int) -> None:
    assert NodeConfig.parse({"target_file_size": size}).target_file_size == parsed


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"mirror": "no"}, "`mirror` is 'no'. Allowed: true, false."),
        ({"mirror": 1}, "`mirror` is 1"),
        ({"on_breaking_change": "ignore"}, "Allowed: rebuild, fail."),
        ({"unique_key": "id", "insert_marker": "4"}, "Allowed: upsert, insert."),
        ({"insert_marker": "insert"}, "needs a `unique_key`"),
        ({"landing_format": "avro"}, "Allowed: parquet, csv, tsv, psv."),
        ({"compression": True}, "Allowed: none, snappy, gzip, zstd."),
        ({"target_file_size": "128"}, "kb, mb or gb"),
        ({"target_file_size": "0mb"}, "kb, mb or gb"),
        ({"unique_key": {"a": 1}}, "name of a column"),
        ({"unique_key": ["id", ""]}, "name of a column"),
        (
            {"partition_by": {"field": "day", "data_type": "date", "granularity": "month"}},
            "as BigQuery has it. Set the names of columns, whose values Spark keeps in folders "
            "of their own: `partition_by: [day]`",
        ),
        ({"grants": {"select": ["me"]}}, "decided in Fabric"),
        ({"uniqe_key": "id"}, "Did you mean `unique_key`?"),
        ({"compresion": "zstd"}, "Did you mean `compression`?"),
        ({"location_root": "/data"}, "not supported"),
        ({"file_detection": "time"}, "Allowed: sequential, last_update_time."),
        ({"unique_key": "id", "default_row_marker": "4"}, "Allowed: insert, upsert."),
        ({"default_row_marker": "upsert"}, "needs a `unique_key`"),
        (
            {"unique_key": "id", "default_row_marker": "upsert", "insert_marker": "insert"},
            "contradicts",
        ),
        (
            {
                "materialized": "incremental",
                "merge_update_columns": ["a"],
                "merge_exclude_columns": ["b"],
            },
            "contradicts",
        ),
        ({"delimited": {"null_value": ""}}, "for a `landing_format` of csv, tsv, psv"),
        ({"landing_format": "csv", "compression": "zstd"}, "Allowed: none, gzip."),
    ],
)
def test_unknown_contradictory_and_misspelled_options_are_refused(
    config: dict[str, Any], message: str
) -> None:
    with pytest.raises(CompilationError) as error:
        NodeConfig.parse(config)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("landing_format", "separator"), [("csv", ","), ("tsv", "\t"), ("psv", "|")]
)
def test_delimited_text_has_the_defaults_of_the_specification(
    landing_format: str, separator: str
) -> None:
    parsed = NodeConfig.parse({"landing_format": landing_format})

    assert parsed.compression == "none"
    assert parsed.delimited == DelimitedText(separator, "\r\n", '"', "\\", "null", "UTF-8")


@pytest.mark.parametrize("newline", ["\n", r"\n"], ids=["character", "spelled"])
def test_every_property_of_delimited_text_can_be_set(newline: str) -> None:
    options = {
        "first_row_as_header": True,
        "row_separator": newline,
        "column_separator": ";",
        "quote_character": "'",
        "escape_character": "",
        "null_value": "",
        "encoding": "UTF-16",
    }

    parsed = NodeConfig.parse({"landing_format": "csv", "delimited": options})

    assert parsed.delimited == DelimitedText(";", "\n", "'", "", "", "utf-16")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"first_row_as_header": False}, "must be true"),
        ({"row_separator": "|"}, r"Allowed: '\r\n', '\n', '\r'."),
        ({"column_separator": "#"}, "Allowed: ',', ';', '|', "),
        ({"quote_character": "`"}, "`delimited.quote_character` is '`'"),
        ({"escape_character": "^"}, "`delimited.escape_character` is '^'"),
        ({"encoding": "ebcdic"}, "windows-1252"),
        ({"null_value": None}, "in quotes"),
        ({"null_value": "a,b"}, "',' in it"),
        ({"null_value": "N/A", "escape_character": "/"}, "'/' in it"),
        ({"null_value": "0"}, "a number"),
        ({"null_value": "nan"}, "a number"),
        ({"null_value": " null"}, "another spelling of NULL"),
        ({"quote": "'"}, "There are: column_separator, row_separator"),
        ("csv", "options with values"),
    ],
)
def test_delimited_text_that_could_be_mistaken_is_refused(options: Any, message: str) -> None:
    with pytest.raises(CompilationError) as error:
        NodeConfig.parse({"landing_format": "csv", "delimited": options})
    assert message in str(error.value)


def test_options_of_others_are_none_of_our_business() -> None:
    NodeConfig.parse({"partition_by": "day", "delimiter": ",", "owner": "me", "my_package": 1})


@pytest.mark.parametrize(
    ("config", "macro"),
    [
        ({"materialized": "incremental"}, "mirror_append"),
        ({"materialized": "incremental", "unique_key": "id"}, "mirror_merge"),
        (
            {
                "materialized": "incremental",
                "unique_key": "id",
                "incremental_strategy": "delete+insert",
            },
            "mirror_delete_insert",
        ),
        # options of an incremental model do not matter elsewhere
        ({"materialized": "table", "incremental_strategy": "delete+insert"}, "mirror_append"),
    ],
)
def test_new_rows_are_merged_if_there_is_a_key(config: dict[str, Any], macro: str) -> None:
    assert NodeConfig.parse(config).strategy_macro == macro


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"incremental_strategy": "upsert"}, "Allowed: append, merge, delete+insert"),
        ({"incremental_strategy": "delete+insert"}, "needs a `unique_key`"),
        ({"incremental_strategy": "microbatch"}, "requires a `partition_by`"),
        ({"delete_when": "gone"}, "`delete_when` is for incremental models"),
        ({"delete_when": "gone", "incremental_strategy": "merge"}, "with a `unique_key`"),
    ],
)
def test_a_strategy_that_cannot_be_is_refused(config: dict[str, Any], message: str) -> None:
    with pytest.raises(CompilationError) as error:
        NodeConfig.parse({"materialized": "incremental", **config})
    assert message in str(error.value)


@pytest.mark.parametrize(
    "config",
    [
        {"unique_key": ["id", 7]},
        {"unique_key": {"id": 1}},
        {"partition_by": {"id": 1}},
        {"partition_by": ["day", ""]},
        {"file_format": 7},
        {"file_format": "parquet as select 1 --"},
        {"compression": ["zstd"]},
        {"compression": {"zstd": 1}},
        {"on_breaking_change": True},
        {"mirror": 0},
        {"mirror": "false"},
        {"delete_when": ["true"]},
        {"target_file_size": "1 tb"},
        {"target_file_size": True},
        {"target_file_size": [1]},
    ],
)
def test_a_value_of_another_shape_is_refused(config: dict[str, Any]) -> None:
    with pytest.raises(CompilationError, match=f"`{next(iter(config))}` is"):
        NodeConfig.parse(config)


@pytest.mark.parametrize(
    ("options", "touched_by"),
    [
        # new rows are only added
        (NodeConfig(), []),
        (NodeConfig(unique_key=("id", "line"), incremental_strategy="merge"), [("id", "line")]),
        (NodeConfig(incremental_strategy="insert_overwrite"), None),
        (
            NodeConfig(partition_by=("day",), incremental_strategy="microbatch"),
            [("day",)],
        ),
        (
            NodeConfig(("id",), partition_by=("day",), incremental_strategy="insert_overwrite"),
            [("day",), ("id",)],
        ),
    ],
)
def test_a_new_row_may_change_rows_of_its_key_or_its_partition(
    options: NodeConfig, touched_by: list[tuple[str, ...]] | None
) -> None:
    assert options.touched_by == touched_by
