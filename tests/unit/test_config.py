from typing import Any

import pytest
from dbt_common.exceptions import CompilationError

from dbt.adapters.openmirroring.config import NodeConfig


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
        ({"landing_format": "avro"}, "Allowed: parquet."),
        ({"compression": True}, "Allowed: none, snappy, gzip, zstd."),
        ({"target_file_size": "128"}, "kb, mb or gb"),
        ({"target_file_size": "0mb"}, "kb, mb or gb"),
        ({"unique_key": {"a": 1}}, "name of a column"),
        ({"unique_key": ["id", ""]}, "name of a column"),
        ({"grants": {"select": ["me"]}}, "decided in Fabric"),
        ({"uniqe_key": "id"}, "Did you mean `unique_key`?"),
        ({"compresion": "zstd"}, "Did you mean `compression`?"),
        ({"location_root": "/data"}, "not supported"),
    ],
)
def test_what_is_unknown_contradictory_or_misspelled_is_refused(
    config: dict[str, Any], message: str
) -> None:
    with pytest.raises(CompilationError) as error:
        NodeConfig.parse(config)
    assert message in str(error.value)


def test_options_of_others_are_none_of_our_business() -> None:
    NodeConfig.parse({"partition_by": "day", "owner": "me", "my_package_setting": 1})


@pytest.mark.parametrize(
    ("config", "strategy"),
    [
        ({"materialized": "incremental"}, "append"),
        ({"materialized": "incremental", "unique_key": "id"}, "merge"),
        (
            {
                "materialized": "incremental",
                "unique_key": "id",
                "incremental_strategy": "delete+insert",
            },
            "delete_insert",
        ),
        # what an incremental model would need does not matter elsewhere
        ({"materialized": "table", "incremental_strategy": "delete+insert"}, "append"),
    ],
)
def test_new_rows_are_merged_if_there_is_a_key(config: dict[str, Any], strategy: str) -> None:
    assert NodeConfig.parse(config).strategy_name == strategy


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"incremental_strategy": "upsert"}, "Allowed: append, merge, delete+insert"),
        ({"incremental_strategy": "delete+insert"}, "needs a `unique_key`"),
        ({"incremental_strategy": "microbatch"}, "requires a `partition_by`"),
        ({"delete_when": "gone"}, "`delete_when` is for incremental models"),
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
