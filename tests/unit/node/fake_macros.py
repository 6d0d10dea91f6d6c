"""What the statements of the package's macros do in a Spark in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING, Any

from dbt.adapters.openmirroring.landing_zone.layout import ROW_MARKER
from dbt.adapters.openmirroring.node.compare import Side
from dbt.adapters.openmirroring.node.incremental import ConvertedColumn, IncrementalColumn
from dbt.adapters.openmirroring.node.plan import SparkPlan
from dbt.adapters.openmirroring.node.snapshot.key_ranges import KeyRange
from dbt.adapters.openmirroring.node.snapshot.reuse import FileRange, TouchedRows
from dbt.adapters.openmirroring.spark.relation import OpenMirroringColumn
from dbt.adapters.openmirroring.spark.table import local_path
from dbt.adapters.openmirroring.types.casts import Cast
from dbt.adapters.openmirroring.types.columns import LandingColumn
from tests.unit.node.fake_rows import Row, Rows, answer, landed, names_of, read_file, write_file
from tests.unit.node.faults import MirroredRows

if TYPE_CHECKING:
    from tests.unit.node.fake_warehouse import FakeSpark

# so that small tables have several files
ROWS_PER_FILE = 3


def _in_range(rows: Rows, keys: KeyRange) -> Rows:
    """The rows whose key, an integer, is in a range."""
    first, last = (int(value.rstrip("L")) for value in (keys.first, keys.last))
    return rows.where(
        lambda row: row[0] is None or first <= row[0] <= last, [keys.column.strip("`")]
    )


def _plain(name: str) -> str:
    return name.strip("`")


def _in_types(rows: Rows, columns: Sequence[tuple[str, Cast | None, str]]) -> Rows:
    """Rows in other types: integers and texts."""
    types = {
        alias: str(cast.target) if cast else rows.columns[name] for name, cast, alias in columns
    }
    found = rows.of([name for name, _, _ in columns])
    return Rows(types, tuple(tuple(map(_cast, row, types.values())) for row in found))


def _cast(value: Any, dtype: str) -> Any:
    if value is None or dtype not in ("int", "bigint", "string"):
        return value
    return str(value) if dtype == "string" else int(value)


def _extended(before: Rows, after: Rows, columns: Sequence[IncrementalColumn]) -> Rows:
    """Rows of a snapshot and new rows; a column that one of them does not have is NULL."""
    rows: list[Row] = []
    for part in (before, after):
        found = [column.name if column.name in part.columns else None for column in columns]
        for row in part.rows:
            values = dict(zip(part.columns, row, strict=True))
            rows.append(tuple(values[name] if name else None for name in found))
    return Rows({column.name: column.dtype for column in columns}, tuple(rows))


class Macros:
    """The macros, with their names and the names of their arguments.

    Those that are queries return rows.
    """

    def __init__(self, spark: FakeSpark) -> None:
        self._spark = spark

    # Tables

    def mirror_create_table(
        self,
        *,
        table: object,
        query: str,
        properties: Mapping[str, str],
        options: Mapping[str, str],
        partition_by: Sequence[str],
    ) -> None:
        assert not partition_by
        assert options in ({"compression": "zstd"}, {})
        rows = self._spark.select(query)
        self._spark.create(table, rows, properties, self._spark.file_format)

    def mirror_keep(
        self, *, table: object, query: str, properties: Mapping[str, str] | None = None
    ) -> None:
        self._spark.create(table, self._spark.select(query), properties or {}, "parquet")

    # The mirrored table

    def mirror_replica_view(self, *, view: str, replica: MirroredRows) -> None:
        self._spark.results[f"select * from {view}"] = lambda: replica.rows

    def mirror_restored_rows(self, *, view: str | None, columns: Sequence[LandingColumn]) -> Rows:
        found = self._spark.select(f"select * from {view}") if view else None
        rows = found.of(names_of(columns)) if found else ()
        return Rows({column.name: column.dtype for column in columns}, tuple(rows))

    def mirror_landed_rows(self, *, view: str, columns: Sequence[LandingColumn]) -> Rows:
        return landed(columns, self._spark.select(f"select * from {view}").of(names_of(columns)))

    def mirror_count_without_key(self, *, table: object, keys: Sequence[str]) -> Rows:
        found = self._spark.select(table).of(keys)
        return answer(("n",), (sum(None in key for key in found),))

    def mirror_mark(self, *, table: object, properties: Mapping[str, str]) -> None:
        found = self._spark.table(table)
        found.properties.update(properties)
        found.change("SET TBLPROPERTIES")

    def mirror_unmark(self, *, table: object, names: Iterable[str]) -> None:
        found = self._spark.table(table)
        for name in names:
            found.properties.pop(name, None)
        found.change("UNSET TBLPROPERTIES")

    def mirror_find_files(self, *, table: object) -> None:
        self._spark.table(table)

    def mirror_count_rows(self, *, table: object) -> Rows:
        return answer(("count",), (len(self._spark.select(table).rows),))

    def mirror_table_bytes(self, *, table: object) -> Rows:
        return answer(("bytes",), (1000,))

    def mirror_delta_operations(self, *, table: object, limit: int | None = None) -> Rows:
        versions = self._spark.table(table).versions
        found = [(number, operation) for number, (operation, _) in enumerate(versions)]
        return answer(("version", "operation"), *found[::-1][:limit])

    # New rows

    def mirror_live_rows(self, *, query: str, delete_when: str | None) -> Rows:
        rows = self._spark.select(query)
        return rows.where(lambda row: not row[0], [delete_when]) if delete_when else rows

    def mirror_ambiguous_rows(self, *, new_rows: object, keys: Sequence[str]) -> Rows:
        counts = Counter(self._spark.select(new_rows).of(keys))
        return answer((*keys, "count"), *((*k, n) for k, n in counts.items() if n > 1))

    def mirror_typed_rows(
        self, *, rows: object, columns: Sequence[ConvertedColumn], remedy: str
    ) -> Rows:
        names = [(_plain(name), cast, _plain(alias)) for name, cast, alias in columns]
        return _in_types(self._spark.select(rows), names)

    def mirror_typed_snapshot(
        self, *, rows: FileRange, columns: Sequence[IncrementalColumn], remedy: str
    ) -> Rows:
        had = [(c.name, c.snapshot_cast, c.name) for c in columns if c.snapshot_type is not None]
        return _in_types(self._range(rows), had)

    def mirror_append(
        self,
        *,
        snapshot: str,
        new_rows: object,
        columns: Sequence[IncrementalColumn],
        options: Any,
        predicates: object,
    ) -> Rows:
        return _extended(self._spark.select(snapshot), self._spark.select(new_rows), columns)

    def mirror_merge(
        self,
        *,
        snapshot: str,
        new_rows: object,
        columns: Sequence[IncrementalColumn],
        options: Any,
        predicates: object,
    ) -> Rows:
        before, after = self._spark.select(snapshot), self._spark.select(new_rows)
        if not options.unique_key:
            return _extended(before, after, columns)
        keys = set(after.of(options.unique_key))
        kept = before.where(lambda key: key not in keys, options.unique_key)
        live = (
            after.where(lambda row: not row[0], [options.delete_when])
            if (options.delete_when)
            else after
        )
        return _extended(kept, live, columns)

    # they differ in rows that have the same key, which a merge refuses
    mirror_delete_insert = mirror_merge

    def mirror_key_bounds(
        self, *, new_rows: object, columns: Sequence[OpenMirroringColumn]
    ) -> Rows:
        found: list[int | None] = []
        for column in columns:
            values = [value for (value,) in self._spark.select(new_rows).of([column.name])]
            known = [value for value in values if value is not None]
            found += [min(known), max(known)] if known else [None, None]
        return answer((f"bound{number}" for number in range(len(found))), tuple(found))

    def mirror_touched_rows(
        self,
        *,
        snapshot: object,
        new_rows: object,
        keys: Sequence[str],
        ranges: Sequence[KeyRange],
    ) -> Rows:
        new = set(self._spark.select(new_rows).of(keys))
        found = self._spark.select(snapshot).where(lambda key: key in new, keys)
        return reduce(_in_range, ranges, found)

    def mirror_with_touched_rows(
        self, *, snapshot: object, replacement: object, touched: TouchedRows, names: object
    ) -> Rows:
        return self._taken(snapshot, replacement, touched.new_rows, touched.keys)

    def mirror_merge_part(
        self,
        *,
        snapshot: object,
        part: object,
        new_rows: object,
        keys: Sequence[str],
        names: Any,
        ranges: Sequence[KeyRange],
    ) -> None:
        self._spark.refuses()
        taken = self._taken(snapshot, part, new_rows, keys, ranges)
        self._spark.table(snapshot).change("MERGE", taken)

    def mirror_insert_part(self, *, snapshot: object, part: object, names: object) -> None:
        self._spark.refuses()
        self._spark.table(snapshot).change("WRITE", self._taken(snapshot, part, None, ()))

    def _taken(
        self,
        snapshot: object,
        part: object,
        new_rows: object,
        keys: Sequence[str],
        ranges: Sequence[KeyRange] = (),
    ) -> Rows:
        before, after = self._spark.select(snapshot), self._spark.select(part)
        new = set(self._spark.select(new_rows).of(keys)) if keys else set()
        new &= set(reduce(_in_range, ranges, before).of(keys))
        kept = before.where(lambda key: key not in new, keys)
        return replace(before, rows=kept.rows + after.rows)

    # The comparison

    def mirror_count_load(
        self, *, table: object, keys: Sequence[LandingColumn], is_small: bool, checks: object = ()
    ) -> Rows:
        rows = self._spark.select(table)
        found = Counter(rows.of(names_of(keys)))
        refused = bool(keys) and any(n > 1 or None in key for key, n in found.items())
        return answer(("inserted", "refused"), (len(rows.rows), refused))

    def mirror_bad_values(self, *, table: object, keys: object, checks: object) -> Rows:
        return answer(("check", "bad", "example"))

    def mirror_bad_keys(self, *, table: object, keys: Sequence[LandingColumn]) -> Rows:
        counts = Counter(self._spark.select(table).of(names_of(keys)))
        bad = [(key, n) for key, n in counts.items() if n > 1 or None in key]
        return answer(("bad", *names_of(keys), "rows"), *((len(bad), *k, n) for k, n in bad))

    def mirror_left_rows(
        self,
        *,
        table: object,
        snapshot: object,
        keys: Sequence[LandingColumn],
        published_keys: Sequence[LandingColumn],
        partition_by: object,
    ) -> Rows:
        before = Counter(self._spark.select(snapshot).of(names_of(published_keys)))
        after = Counter(self._spark.select(table).of(names_of(keys)))
        left = [key for key, n in after.items() if n > 1 and before[key] == 1]
        names = ("bad", *names_of(keys), "published", "new")
        return answer(names, *((len(left), *key, "", "") for key in left))

    def mirror_compare_keyed(
        self, *, after: Side, before: Side, is_small: bool, insert_marker: str
    ) -> Rows:
        new, old = self._by_key(after), self._by_key(before)
        compared = []
        for key in dict.fromkeys((*old, *new)):
            n, p = len(new.get(key, ())), len(old.get(key, ()))
            if n > 1 or None in key:
                marker = None
            elif n and p:
                is_same = p == 1 and new[key][0][0] == old[key][0][0]
                marker = -1 if is_same else 1
            else:
                marker = 2 if p else {"upsert": 4, "insert": 0}[insert_marker]
            if is_small or marker != -1:
                compared.append((*key, new[key][0][1] if n else None, p, marker))
        names = [f"k{number}" for number in range(len(after.keys))]
        return answer((*names, "latest", "p", "marker"), *compared)

    def mirror_compare_keyless(
        self, *, after: Side, before: Side, is_small: bool, insert_marker: str
    ) -> Rows:
        counts = Counter(self._digests(after))
        counts.subtract(self._digests(before))
        return answer(("k0", "k1", "n"), *((k, k, n) for k, n in counts.items() if n))

    def mirror_count_keyed(self, *, changed: str, snapshot: object) -> Rows:
        found = self._spark.select(changed)
        markers = Counter(marker for (marker,) in found.of(["marker"]))
        published = sum(p for (p,) in found.of(["p"]))
        before = len(self._spark.select(snapshot).rows) if snapshot else published
        counted = (markers[0] + markers[4], markers[1], markers[2], markers[None], before)
        return answer(("inserted", "updated", "deleted", "refused", "rows_before"), counted)

    def mirror_count_keyless(self, *, changed: str, snapshot: object) -> Rows:
        changes = [n for (n,) in self._spark.select(changed).of(["n"])]
        new, gone = sum(n for n in changes if n > 0), -sum(n for n in changes if n < 0)
        before = len(self._spark.select(snapshot).rows)
        names = ("inserted", "updated", "deleted", "refused", "rows_before")
        return answer(names, (new, 0, gone, 0, before))

    def _range(self, rows: FileRange) -> Rows:
        found = self._spark.select(rows.relation)
        return replace(found, rows=()) if rows.only == () else found

    def _digests(self, side: Side) -> list[Row]:
        """The compared values of each row; NULL for a column that this side does not have."""
        rows = self._range(side.rows)
        had = rows.of([value.name for value in side.values if value])
        found = []
        for row in had:
            values = iter(row)
            found.append(tuple(next(values) if value else None for value in side.values))
        return found

    def _by_key(self, side: Side) -> dict[Row, list[tuple[Row, Row]]]:
        """The compared values and the whole row of each row, by its key."""
        rows = self._range(side.rows)
        found: dict[Row, list[tuple[Row, Row]]] = {}
        for key, digest, row in zip(
            rows.of(names_of(side.keys)), self._digests(side), rows.rows, strict=True
        ):
            found.setdefault(key, []).append((digest, row))
        return found

    # Files

    def mirror_load(self, *, table: object, columns: Sequence[LandingColumn], files: int) -> Rows:
        return landed(columns, self._spark.select(table).of(names_of(columns)))

    def mirror_changes_keyed(
        self, *, rows: FileRange, columns: Sequence[LandingColumn], plan: SparkPlan, files: int
    ) -> Rows:
        keys = plan.definition.key_columns
        latest, changed = self._range(rows), self._spark.select(plan.changed)
        by_key = dict(zip(latest.of(keys), latest.of(names_of(columns)), strict=True))
        deletes, others = [], []
        for *values, marker in changed.of([*(f"k{i}" for i in range(len(keys))), "marker"]):
            key = dict(zip(keys, values, strict=True))
            if marker == 2:
                deletes.append((*(key.get(column.name) for column in columns), marker))
            elif marker != -1:
                others.append((*by_key[tuple(values)], marker))
        found = landed(columns, [row[:-1] for row in deletes + others])
        if not plan.is_marked:
            return found
        return Rows({**found.columns, ROW_MARKER: "int"}, (*deletes, *others))

    def mirror_changes_keyless(
        self, *, rows: FileRange, columns: Sequence[LandingColumn], plan: SparkPlan, files: int
    ) -> Rows:
        left = {k: n for k, n in self._spark.select(plan.changed).of(["k0", "n"]) if n > 0}
        found = []
        for row in self._range(rows).of(names_of(columns)):
            if left.get(row, 0):
                left[row] -= 1
                found.append(row)
        return landed(columns, found)

    def mirror_write_files(
        self, *, url: str, rows: str, text: None, compression: str, rows_per_file: int
    ) -> None:
        folder, found = local_path(url), self._spark.select(rows)
        assert folder
        folder.mkdir(parents=True, exist_ok=True)
        for number, start in enumerate(range(0, max(1, len(found.rows)), ROWS_PER_FILE)):
            part = replace(found, rows=found.rows[start : start + ROWS_PER_FILE])
            write_file(folder / f"part-{number}.parquet", part)

    def mirror_count_files(self, *, url: str, plan: SparkPlan) -> Rows:
        folder = local_path(url)
        assert folder
        counts: Counter[Row] = Counter()
        for file in folder.iterdir():
            rows = read_file(file)
            markers = rows.of([ROW_MARKER]) if plan.is_marked else [(None,)] * len(rows.rows)
            counts.update((file.name, marker) for (marker,) in markers)
        return answer(("file", "marker", "found"), *((*k, n) for k, n in counts.items()))
