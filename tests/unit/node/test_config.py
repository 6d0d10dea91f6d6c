"""The configuration of a node."""

from __future__ import annotations

from typing import Any

import pytest
from dbt_common.exceptions import CompilationError

from dbt.adapters.openmirroring.landing_zone.batch import DelimitedText
from dbt.adapters.openmirroring.node.config import (
    EVERYWHERE,
    INCREMENTAL,
    NodeConfig,
)

MERGING = {"materialized": "incremental", "unique_key": "id"}
MICROBATCH = {"incremental_strategy": "microbatch", "event_time": "at"}


def refusal(config: dict[str, Any]) -> str:
    with pytest.raises(CompilationError) as error:
        NodeConfig.parse(config)
    return str(error.value)


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


@pytest.mark.parametrize(
    ("config", "name", "parsed"),
    [
        ({"unique_key": "with space"}, "unique_key", ("with space",)),
        ({"unique_key": ["b", "a", "B", "a"]}, "unique_key", ("b", "a")),
        ({"unique_key": None}, "unique_key", ()),
        ({"unique_key": []}, "unique_key", ()),
        ({"target_file_size": "1kb"}, "target_file_size", 1024),
        ({"target_file_size": "128mb"}, "target_file_size", 2**27),
        ({"target_file_size": "2 GB"}, "target_file_size", 2**31),
        ({"target_file_size": None}, "target_file_size", 2**27),
        ({"materialized": "incremental"}, "strategy_macro", "mirror_append"),
        (MERGING, "strategy_macro", "mirror_merge"),
        (
            {**MERGING, "incremental_strategy": "delete+insert"},
            "strategy_macro",
            "mirror_delete_insert",
        ),
        # options of an incremental model do not matter elsewhere
        (
            {"materialized": "table", "incremental_strategy": "delete+insert"},
            "strategy_macro",
            "mirror_append",
        ),
        # by which columns a new row changes others
        ({"materialized": "incremental"}, "touched_by", []),
        ({**MERGING, "unique_key": ["id", "line"]}, "touched_by", [("id", "line")]),
        ({**MERGING, "incremental_strategy": "insert_overwrite"}, "touched_by", None),
        (
            {**MERGING, **MICROBATCH, "partition_by": "day"},
            "touched_by",
            [("day",), ("id",)],
        ),
        (
            {
                "materialized": "incremental",
                "incremental_strategy": "insert_overwrite",
                "partition_by": "day",
            },
            "touched_by",
            [("day",)],
        ),
    ],
)
def test_an_option_is_read(config: dict[str, Any], name: str, parsed: Any) -> None:
    assert getattr(NodeConfig.parse(config), name) == parsed


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"mirror": "no"}, "`mirror` is 'no'. Allowed: true, false."),
        ({"mirror": 0}, "`mirror` is 0"),
        ({"on_breaking_change": "ignore"}, "Allowed: rebuild, fail."),
        ({"on_breaking_change": True}, "`on_breaking_change` is True"),
        ({"unique_key": "id", "insert_marker": "4"}, "Allowed: upsert, insert."),
        ({"insert_marker": "insert"}, "needs a `unique_key`"),
        ({"landing_format": "avro"}, "Allowed: parquet, csv, tsv, psv."),
        ({"compression": True}, "Allowed: none, snappy, gzip, zstd."),
        ({"compression": ["zstd"]}, "Allowed: none, snappy, gzip, zstd."),
        ({"target_file_size": "128"}, "kb, mb or gb"),
        ({"target_file_size": "0mb"}, "kb, mb or gb"),
        ({"target_file_size": "1 tb"}, "kb, mb or gb"),
        ({"target_file_size": [1]}, "`target_file_size` is [1]"),
        ({"unique_key": {"a": 1}}, "name of a column"),
        ({"unique_key": ["id", ""]}, "name of a column"),
        ({"unique_key": ["id", 7]}, "name of a column"),
        (
            {"partition_by": {"field": "day", "data_type": "date", "granularity": "month"}},
            "as BigQuery has it. Set the names of columns, whose values Spark keeps in folders "
            "of their own: `partition_by: [day]`",
        ),
        ({"partition_by": {"id": 1}}, "`partition_by` is"),
        ({"file_format": 7}, "`file_format` is 7"),
        ({"file_format": "parquet as select 1 --"}, "It must be the name of a format"),
        ({"delete_when": ["true"]}, "`delete_when` is"),
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
            {**MERGING, "merge_update_columns": ["a"], "merge_exclude_columns": ["b"]},
            "contradicts",
        ),
        ({"delimited": {"null_value": ""}}, "for a `landing_format` of csv, tsv, psv"),
        ({"landing_format": "csv", "compression": "zstd"}, "Allowed: none, gzip."),
        (
            {**MERGING, "incremental_strategy": "replace_where"},
            "`incremental_strategy: replace_where` is not supported, and without it the table "
            "would have other rows or another place. Nothing was changed. Set `insert_overwrite` "
            "with `partition_by`",
        ),
        (
            {**MERGING, "incremental_strategy": "insert_overwrite", "liquid_clustered_by": "day"},
            "`liquid_clustered_by` with insert_overwrite is not supported, and without it the "
            "table would have other rows or another place. Nothing was changed. Set "
            "`partition_by`",
        ),
        ({**MERGING, "incremental_strategy": "upsert"}, "Allowed: append, merge, delete+insert"),
        (
            {"materialized": "incremental", "incremental_strategy": "delete+insert"},
            "needs a `unique_key`",
        ),
        ({**MERGING, **MICROBATCH}, "requires a `partition_by`"),
        ({**MERGING, "materialized": "table", "delete_when": "gone"}, "is for incremental models"),
        ({"materialized": "incremental", "delete_when": "gone"}, "with a `unique_key`"),
        ({"max_deleted": -1}, "`max_deleted` is -1"),
        ({"max_deleted": "ten"}, "`max_deleted` is 'ten'"),
        ({"max_deleted": "101%"}, "`max_deleted` is '101%'"),
        ({"max_deleted": True}, "`max_deleted` is True"),
        ({"max_deleted": 1.5}, "`max_deleted` is 1.5"),
        ({"max_deleted": "1000 rows"}, "`max_deleted` is '1000 rows'"),
    ],
)
def test_unknown_contradictory_and_misspelled_options_are_refused(
    config: dict[str, Any], message: str
) -> None:
    assert message in refusal(config)


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
        ("csv", "names with values"),
    ],
)
def test_delimited_text_that_could_be_mistaken_is_refused(options: Any, message: str) -> None:
    assert message in refusal({"landing_format": "csv", "delimited": options})


# Options of other adapters


@pytest.mark.parametrize("materialized", ["table", "incremental", "seed", "snapshot"])
@pytest.mark.parametrize("name", EVERYWHERE)
def test_an_option_of_another_adapter_is_refused_by_name(name: str, materialized: str) -> None:
    message = refusal({"materialized": materialized, name: "iceberg"})

    assert f"`{name}` is not supported" in message
    assert EVERYWHERE[name] in message
    NodeConfig.parse({"materialized": "view", name: "iceberg"})


@pytest.mark.parametrize("value", [True, "delete", "t.id > 1"])
@pytest.mark.parametrize("name", INCREMENTAL)
def test_an_option_of_a_merge_is_refused_in_an_incremental_model(name: str, value: Any) -> None:
    message = refusal({**MERGING, name: value})

    assert f"`{name}` is not supported" in message
    assert INCREMENTAL[name] in message
    NodeConfig.parse({"materialized": "table", name: value})


@pytest.mark.parametrize("value", [None, False, "", [], {}, "false", "False", "none", "default"])
def test_an_option_that_is_off_is_no_option(value: Any) -> None:
    off = dict.fromkeys([*EVERYWHERE, *INCREMENTAL], value)

    NodeConfig.parse({"materialized": "incremental", **off})


def test_options_that_change_no_row_are_ignored() -> None:
    harmless = {
        "zorder": ["id"],
        "liquid_clustered_by": "id",
        "databricks_tags": {"team": "sales"},
        "skip_optimize": True,
        "submission_method": "serverless_cluster",
        "partition_by": "day",
        "delimiter": ",",
        "owner": "me",
    }

    assert NodeConfig.parse({**MERGING, **harmless}).incremental_strategy == "merge"
