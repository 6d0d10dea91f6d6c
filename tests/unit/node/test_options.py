"""Each option that is a list, a text or a choice, in each form that a user may write it in."""

from __future__ import annotations

from typing import Any

import pytest
from dbt_common.exceptions import CompilationError

from dbt.adapters.openmirroring.impl import OpenMirroringAdapter
from dbt.adapters.openmirroring.node import options
from dbt.adapters.openmirroring.node.config import NodeConfig
from dbt.adapters.openmirroring.node.options import given, read_options

FORMS: dict[str, Any] = {
    "''": "",
    "' '": " \n",
    "[]": [],
    "['']": [""],
    "[null]": [None],
    "{}": {},
    "a": "a",
    "[a]": ["a"],
    "[b, a, A, `b`]": ["b", "a", "A", "`b`"],
    "{a: b}": {"a": "b"},
    "7": 7,
    "false": False,
    "'false'": "false",
}

# a node of each kind without the options that are tried
NODES: dict[str, dict[str, Any]] = {
    "incremental": {"materialized": "incremental", "unique_key": "id"},
    "snapshot": {
        **{"materialized": "snapshot", "unique_key": "id"},
        **{"strategy": "check", "check_cols": ["name"], "updated_at": "at"},
    },
    "seed": {"materialized": "seed"},
}

ONE = {"a": ("a",), "[a]": ("a",), "'false'": ("false",)}
COLUMNS = {"[]": (), **ONE, "[b, a, A, `b`]": ("b", "a")}
TEXTS = {"[]": (), **ONE, "[b, a, A, `b`]": ("b", "a", "A", "`b`")}
TEXT = {"a": "a", "'false'": "false"}
WITH_VALUES = {"{}": {}, "{a: b}": {"a": "b"}}

# what each option becomes in the forms that it can have; all others are refused
KEPT: dict[str, dict[str, dict[str, Any]]] = {
    "incremental": {
        "unique_key": COLUMNS,
        "partition_by": COLUMNS,
        "clustered_by": COLUMNS,
        "incremental_strategy": {},
        "on_schema_change": {},
        # dbt would update all columns
        "merge_update_columns": {form: kept for form, kept in COLUMNS.items() if form != "[]"},
        "merge_exclude_columns": COLUMNS,
        "incremental_predicates": TEXTS,
        "predicates": TEXTS,
        "event_time": TEXT,
        "sql_header": {"' '": " \n", **TEXT},
        "delete_when": TEXT,
        "file_format": TEXT,
        "location_root": {},
        "tblproperties": WITH_VALUES,
        "options": WITH_VALUES,
        "buckets": {"7": 7},
        "mirror": {"false": False},
        "schema_folder": {"false": False},
        "publish": {},
        "on_breaking_change": {},
        "on_foreign_changes": {},
        "insert_marker": {},
        "default_row_marker": {},
        "landing_format": {},
        "file_detection": {},
        "compression": {},
        "delimited": {"{}": None},
        "target_file_size": {},
        "max_deleted": {"7": 7},
    },
    "snapshot": {
        "unique_key": {form: kept for form, kept in TEXTS.items() if form != "[]"},
        "strategy": TEXT,
        "check_cols": COLUMNS,
        "updated_at": TEXT,
        "hard_deletes": {},
        "invalidate_hard_deletes": {"false": False},
        "snapshot_meta_column_names": {
            form: {name: name for name in options._HISTORY_COLUMNS} for form in ("{}", "{a: b}")
        },
        "dbt_valid_to_current": TEXT,
    },
    "seed": {"column_types": WITH_VALUES},
}

CELLS = [
    pytest.param(kind, name, form, id=f"{kind}, {name}: {form}")
    for kind, names in KEPT.items()
    for name in names
    for form in FORMS
]


def read(config: dict[str, Any], name: str) -> Any:
    """Return what an option means in a configuration that is right."""
    parsed = NodeConfig.parse(config)
    read = read_options(given(config))
    return read[name] if name in read else getattr(parsed, name, None)


@pytest.mark.parametrize(("kind", "name", "form"), CELLS)
def test_an_option_is_kept_as_it_is_meant_or_refused_by_its_name(
    kind: str, name: str, form: str
) -> None:
    config = {**NODES[kind], name: FORMS[form]}
    is_required = kind == "snapshot" and name == "unique_key"

    if form == "''" and not is_required:
        rest = {key: value for key, value in config.items() if key != name}
        assert NodeConfig.parse(config) == NodeConfig.parse(rest)
    elif form in KEPT[kind][name]:
        assert read(config, name) == KEPT[kind][name][form]
    else:
        with pytest.raises(CompilationError, match=f"`{name}"):
            NodeConfig.parse(config)


def test_each_option_that_is_read_has_its_row() -> None:
    rows = {name for names in KEPT.values() for name in names}
    read = {*options._OPTIONS, *(n for names in options._OPTIONS_OF.values() for n in names)}

    assert rows == read | {"compression", "delimited"}
    for kind, names in options._OPTIONS_OF.items():
        assert names.keys() <= KEPT[kind].keys()


def test_all_columns_are_updated_if_the_option_is_null() -> None:
    config = NODES["incremental"]

    assert NodeConfig.parse({**config, "merge_update_columns": None}) == NodeConfig.parse(config)


@pytest.mark.parametrize("kind", ["table", "seed", "snapshot"])
def test_options_of_an_incremental_model_are_not_read_elsewhere(kind: str) -> None:
    node = {**NODES["snapshot"], "materialized": kind}
    project = {name: [""] for name in options._OPTIONS_OF["incremental"]}

    assert NodeConfig.parse({**node, **project}) == NodeConfig.parse(node)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"merge_update_columns": []}, "name the key: `merge_update_columns: <unique_key>`"),
        ({"incremental_strategy": "MERGE"}, "Allowed: append, merge, delete+insert"),
        ({"on_schema_change": "Fail"}, "Allowed: ignore, fail, append_new_columns, sync_all"),
        ({"compression": False}, "Allowed: none, snappy, gzip, zstd."),
        ({"tblproperties": {"a": None}}, "`tblproperties.a` is None"),
        ({"tblproperties": {"OpenMirroring.batch_id": "1"}}, "belong to this adapter"),
        ({"options": {"a": [1]}}, "`options.a` is [1]"),
        ({"options": {"PATH": "/data"}}, "`options.PATH` is not supported"),
        ({"buckets": "8"}, "It must be a whole number"),
        ({"buckets": 0}, "It must be a whole number"),
        (
            {"incremental_strategy": "microbatch", "partition_by": "day", "event_time": ""},
            "requires an `event_time`",
        ),
    ],
)
def test_a_value_that_an_incremental_model_cannot_have_is_refused_with_a_way_out(
    config: dict[str, Any], message: str
) -> None:
    with pytest.raises(CompilationError) as error:
        NodeConfig.parse({**NODES["incremental"], **config})
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"unique_key": ""}, "A dbt snapshot needs a `unique_key`."),
        ({"strategy": "CHECK"}, "Write it in small letters: check."),
        ({"strategy": "timestamp", "updated_at": ""}, "The strategy timestamp needs `updated_at`"),
        ({"strategy": "dbt.timestamp", "updated_at": ""}, "The strategy timestamp needs"),
        ({"hard_deletes": "Invalidate"}, "Allowed: ignore, invalidate, new_record."),
        ({"hard_deletes": "ignore", "invalidate_hard_deletes": False}, "contradicts"),
        (
            {"snapshot_meta_column_names": {"dbt_valid_to": "valid to"}},
            "`snapshot_meta_column_names.dbt_valid_to` is 'valid to'. It must have letters",
        ),
        (
            {"snapshot_meta_column_names": {"dbt_valid_to": "DBT_VALID_FROM", "dbt_scd_id": None}},
            "Each needs a name of its own: dbt_valid_from, DBT_VALID_FROM, dbt_scd_id",
        ),
    ],
)
def test_a_value_that_a_dbt_snapshot_cannot_have_is_refused_with_a_way_out(
    config: dict[str, Any], message: str
) -> None:
    with pytest.raises(CompilationError) as error:
        NodeConfig.parse({**NODES["snapshot"], **config})
    assert message in str(error.value)


def test_the_versions_of_a_dbt_snapshot_have_the_name_of_their_id() -> None:
    names = {"dbt_scd_id": "version", "dbt_valid_to": ""}
    config = {**NODES["snapshot"], "snapshot_meta_column_names": names}

    assert NodeConfig.parse(config).unique_key == ("version",)


@pytest.mark.parametrize("dtype", [7, ["string"], False])
def test_the_type_of_a_column_of_a_seed_is_a_text(dtype: Any) -> None:
    with pytest.raises(CompilationError, match=r"`column_types.id` is .* the name of a type"):
        NodeConfig.parse({"materialized": "seed", "column_types": {"id": dtype}})


@pytest.mark.parametrize("name", ["incremental_predicates", "predicates"])
def test_sql_can_follow_a_predicate_that_ends_with_a_comment(name: str) -> None:
    config = {**NODES["incremental"], name: ["a > 1 -- new", "b"]}

    assert NodeConfig.parse(config).incremental_predicates == ("a > 1 -- new\n", "b")


@pytest.mark.parametrize(
    ("config", "behavior"),
    [
        ({"hard_deletes": "", "invalidate_hard_deletes": ""}, "ignore"),
        ({"hard_deletes": "new_record", "invalidate_hard_deletes": ""}, "new_record"),
        ({"hard_deletes": "", "invalidate_hard_deletes": True}, "invalidate"),
    ],
)
def test_dbt_takes_an_empty_option_about_deleted_rows_for_none(
    config: dict[str, Any], behavior: str
) -> None:
    assert OpenMirroringAdapter.get_hard_deletes_behavior(config) == behavior
