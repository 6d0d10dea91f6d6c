"""The rows of files, and what is in those that were staged."""

from __future__ import annotations

from dataclasses import replace

from dbt.adapters.openmirroring.landing_zone.batch import RowCounts
from dbt.adapters.openmirroring.node.plan import TextFiles
from dbt.adapters.openmirroring.node.snapshot.reuse import FileRange
from tests.unit.macros.cases.shop import (
    AMOUNT,
    CODE,
    DAY,
    ID,
    NEXT,
    ODD,
    ODD_TABLE,
    PART,
    PHOTO,
    PLACED,
    PRICE,
    SEEN,
    STATUS,
    TAGS,
    case,
    plan,
)

COLUMNS = (ID, STATUS, PRICE)
KEYS_LAST = (STATUS, CODE, ID)
TYPES = (ID, STATUS, DAY, PRICE, PLACED, CODE, TAGS, ODD, AMOUNT, PHOTO, SEEN)

LOADED, ADDED = RowCounts(inserted=3), RowCounts(inserted=3)
WITHOUT_DELETES, CHANGED = RowCounts(3, 2), RowCounts(3, 2, 1)
MANY = RowCounts(updated=1_000_001)

ALL_ROWS = FileRange(NEXT)

KEYED = plan(COLUMNS, ("id",), CHANGED)
KEYLESS = plan(COLUMNS, (), ADDED)
URL = "file:/lake/it's [odd]/rows"

CASES = {
    "load": case("mirror_load", table=NEXT, columns=COLUMNS, files=3),
    "load_types": case("mirror_load", table=ODD_TABLE, columns=TYPES, files=1),
    "changes_keyed_in_full": case(
        "mirror_changes_keyed",
        rows=ALL_ROWS,
        columns=COLUMNS,
        plan=replace(KEYED, in_full=True),
        files=1,
    ),
    "changes_keyed_in_full_two_keys_several_files": case(
        "mirror_changes_keyed",
        rows=ALL_ROWS,
        columns=KEYS_LAST,
        plan=plan(KEYS_LAST, ("id", "code"), CHANGED, in_full=True),
        files=2,
    ),
    "changes_keyed_in_full_not_marked": case(
        "mirror_changes_keyed",
        rows=ALL_ROWS,
        columns=COLUMNS,
        plan=plan(COLUMNS, ("id",), WITHOUT_DELETES, in_full=True, default_row_marker="upsert"),
        files=1,
    ),
    "changes_keyed_by_key": case(
        "mirror_changes_keyed", rows=ALL_ROWS, columns=COLUMNS, plan=KEYED, files=2
    ),
    "changes_keyed_by_key_two_keys": case(
        "mirror_changes_keyed",
        rows=FileRange(NEXT, other_than=("a.parquet",)),
        columns=KEYS_LAST,
        plan=plan(KEYS_LAST, ("id", "code"), CHANGED),
        files=1,
    ),
    "changes_keyed_by_key_without_deletes": case(
        "mirror_changes_keyed",
        rows=FileRange(PART),
        columns=COLUMNS,
        plan=plan(COLUMNS, ("id",), WITHOUT_DELETES),
        files=1,
    ),
    "changes_keyed_by_key_not_marked": case(
        "mirror_changes_keyed",
        rows=ALL_ROWS,
        columns=COLUMNS,
        plan=plan(COLUMNS, ("id",), WITHOUT_DELETES, default_row_marker="upsert"),
        files=1,
    ),
    "changes_keyed_by_key_many": case(
        "mirror_changes_keyed",
        rows=ALL_ROWS,
        columns=COLUMNS,
        plan=plan(COLUMNS, ("id",), MANY),
        files=9,
    ),
    "changes_keyless": case(
        "mirror_changes_keyless", rows=ALL_ROWS, columns=COLUMNS, plan=KEYLESS, files=1
    ),
    "changes_keyless_many": case(
        "mirror_changes_keyless",
        rows=FileRange(NEXT, other_than=("a.parquet",)),
        columns=(ODD, TAGS),
        plan=plan((ODD, TAGS), (), RowCounts(inserted=1_000_001)),
        files=9,
    ),
    "write_files": case(
        "mirror_write_files",
        url=URL,
        rows="select 1 as `id`",
        text=None,
        compression="zstd",
        rows_per_file=0,
    ),
    "write_files_cut": case(
        "mirror_write_files",
        url=URL,
        rows="select 1 as `id`",
        text=None,
        compression="snappy",
        rows_per_file=5000,
    ),
    "write_files_text": case(
        "mirror_write_files",
        url=URL,
        rows="select 'line' as line",
        text=TextFiles(encoding="utf-16le"),
        compression="gzip",
        rows_per_file=0,
    ),
    "count_files": case(
        "mirror_count_files", url=URL, plan=plan(COLUMNS, ("id",), LOADED, publication="initial")
    ),
    "count_files_marked": case("mirror_count_files", url=URL, plan=KEYED),
}
