"""What the statements of the package's macros do in a Spark in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING, Any

from dbt.adapters.openmirroring.landing_zone.layout import ROW_MARKER
from dbt.adapters.openmirroring.node.compare import Side
from dbt.adapters.openmirroring.node.next_rows import IncrementalColumn
from dbt.adapters.openmirroring.node.snapshot.reuse import FileRange
from dbt.adapters.openmirroring.node.snapshot.snapshot import KeyRange
from dbt.adapters.openmirroring.spark.table import local_path
from dbt.adapters.openmirroring.types.casts import Cast
from tests.unit.node.fake_rows import Row, Rows, answer, landed, names_of, read_file, write_file

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


def _in_types(rows: Rows, columns: Iterable[tuple[str, Cast | None, str]]) -> Rows:
    """Rows in other types: integers and texts."""
    named = [(name.strip("`"), cast, alias.strip("`")) for name, cast, alias in columns]
    types = {
        alias: str(cast.target) if cast else rows.columns[name] for name, cast, alias in named
    }
    found = rows.of([name for name, _, _ in named])
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
    """The macros, by their names. Each gets its arguments as attributes of one object.

    Those that are queries return rows.
    """

    def __init__(self, spark: FakeSpark) -> None:
        self._spark = spark
        self._select = spark.select

    # Tables

    def mirror_create_table(self, given: Any) -> None:
        assert not given.partition_by
        assert given.options in ({"compression": "zstd"}, {})
        rows = self._select(given.query)
        self._spark.create(given.table, rows, given.properties, self._spark.file_format)

    def mirror_keep(self, given: Any) -> None:
        rows = self._select(given.query)
        self._spark.create(given.table, rows, given.properties or {}, "parquet")

    def mirror_mark(self, given: Any) -> None:
        found = self._spark.table(given.table)
        found.properties.update(given.properties)
        found.change("SET TBLPROPERTIES")

    def mirror_unmark(self, given: Any) -> None:
        found = self._spark.table(given.table)
        for name in given.names:
            found.properties.pop(name, None)
        found.change("UNSET TBLPROPERTIES")

    def mirror_find_files(self, given: Any) -> None:
        self._spark.table(given.table)

    def mirror_count_rows(self, given: Any) -> Rows:
        return answer(("count",), (len(self._select(given.table).rows),))

    def mirror_table_bytes(self, given: Any) -> Rows:
        return answer(("bytes",), (1000,))

    def mirror_delta_operations(self, given: Any) -> Rows:
        versions = self._spark.table(given.table).versions
        found = [(number, operation) for number, (operation, _) in enumerate(versions)]
        return answer(("version", "operation"), *found[::-1][: given.limit])

    # The mirrored table

    def mirror_replica_view(self, given: Any) -> None:
        self._spark.results[f"select * from {given.view}"] = lambda: given.replica.rows

    def mirror_restored_rows(self, given: Any) -> Rows:
        found = self._select(f"select * from {given.view}") if given.view else None
        rows = found.of(names_of(given.columns)) if found else ()
        return Rows({column.name: column.dtype for column in given.columns}, tuple(rows))

    def mirror_landed_rows(self, given: Any) -> Rows:
        found = self._select(f"select * from {given.view}")
        return landed(given.columns, found.of(names_of(given.columns)))

    def mirror_count_without_key(self, given: Any) -> Rows:
        found = self._select(given.table).of(given.keys)
        return answer(("n",), (sum(None in key for key in found),))

    # New rows

    def mirror_live_rows(self, given: Any) -> Rows:
        return self._live(given.query, given.delete_when)

    def _live(self, query: object, delete_when: str | None) -> Rows:
        rows = self._select(query)
        return rows.where(lambda row: not row[0], [delete_when]) if delete_when else rows

    def mirror_ambiguous_rows(self, given: Any) -> Rows:
        counts = Counter(self._select(given.new_rows).of(given.keys))
        return answer((*given.keys, "count"), *((*k, n) for k, n in counts.items() if n > 1))

    def mirror_typed_rows(self, given: Any) -> Rows:
        return _in_types(self._select(given.rows), given.columns)

    def mirror_typed_snapshot(self, given: Any) -> Rows:
        had = [
            (column.name, column.snapshot_cast, column.name)
            for column in given.columns
            if column.snapshot_type is not None
        ]
        return _in_types(self._range(given.rows), had)

    def mirror_append(self, given: Any) -> Rows:
        before, after = self._select(given.snapshot), self._select(given.new_rows)
        return _extended(before, after, given.columns)

    def mirror_merge(self, given: Any) -> Rows:
        keys = given.options.unique_key
        if not keys:
            return self.mirror_append(given)
        new = set(self._select(given.new_rows).of(keys))
        kept = self._select(given.snapshot).where(lambda key: key not in new, keys)
        return _extended(
            kept, self._live(given.new_rows, given.options.delete_when), given.columns
        )

    # they differ in rows that have the same key, which a merge refuses
    mirror_delete_insert = mirror_merge

    def mirror_key_bounds(self, given: Any) -> Rows:
        found: list[int | None] = []
        for column in given.columns:
            values = [value for (value,) in self._select(given.new_rows).of([column.name])]
            known = [value for value in values if value is not None]
            found += [min(known), max(known)] if known else [None, None]
        return answer((f"bound{number}" for number in range(len(found))), tuple(found))

    def mirror_touched_rows(self, given: Any) -> Rows:
        new = set(self._select(given.new_rows).of(given.keys))
        found = self._select(given.snapshot).where(lambda key: key in new, given.keys)
        return reduce(_in_range, given.ranges, found)

    def mirror_with_touched_rows(self, given: Any) -> Rows:
        touched = given.touched
        return self._taken(given.snapshot, given.replacement, touched.new_rows, touched.keys)

    def mirror_merge_part(self, given: Any) -> None:
        self._spark.refuses()
        taken = self._taken(given.snapshot, given.part, given.new_rows, given.keys, given.ranges)
        self._spark.table(given.snapshot).change("MERGE", taken)

    def mirror_insert_part(self, given: Any) -> None:
        self._spark.refuses()
        taken = self._taken(given.snapshot, given.part)
        self._spark.table(given.snapshot).change("WRITE", taken)

    def _taken(
        self,
        snapshot: object,
        part: object,
        new_rows: object = None,
        keys: Sequence[str] = (),
        ranges: Sequence[KeyRange] = (),
    ) -> Rows:
        before, after = self._select(snapshot), self._select(part)
        new = set(self._select(new_rows).of(keys)) if keys else set()
        new &= set(reduce(_in_range, ranges, before).of(keys))
        kept = before.where(lambda key: key not in new, keys)
        return replace(before, rows=kept.rows + after.rows)

    # The comparison

    def mirror_count_load(self, given: Any) -> Rows:
        rows = self._select(given.table)
        found = Counter(rows.of(names_of(given.keys)))
        refused = bool(given.keys) and any(n > 1 or None in key for key, n in found.items())
        return answer(("inserted", "refused"), (len(rows.rows), refused))

    def mirror_bad_values(self, given: Any) -> Rows:
        return answer(("check", "bad", "example"))

    def mirror_bad_keys(self, given: Any) -> Rows:
        names = names_of(given.keys)
        counts = Counter(self._select(given.table).of(names))
        bad = [(key, n) for key, n in counts.items() if n > 1 or None in key]
        return answer(("bad", *names, "rows"), *((len(bad), *k, n) for k, n in bad))

    def mirror_left_rows(self, given: Any) -> Rows:
        before = Counter(self._select(given.snapshot).of(names_of(given.published_keys)))
        after = Counter(self._select(given.table).of(names_of(given.keys)))
        left = [key for key, n in after.items() if n > 1 and before[key] == 1]
        names = ("bad", *names_of(given.keys), "published", "new")
        return answer(names, *((len(left), *key, "", "") for key in left))

    def mirror_compare_keyed(self, given: Any) -> Rows:
        new, old = self._by_key(given.after), self._by_key(given.before)
        compared = []
        for key in dict.fromkeys((*old, *new)):
            n, p = len(new.get(key, ())), len(old.get(key, ()))
            if n > 1 or None in key:
                marker = None
            elif n and p:
                is_same = p == 1 and new[key][0][0] == old[key][0][0]
                marker = -1 if is_same else 1
            else:
                marker = 2 if p else {"upsert": 4, "insert": 0}[given.insert_marker]
            if given.is_small or marker != -1:
                compared.append((*key, new[key][0][1] if n else None, p, marker))
        names = [f"k{number}" for number in range(len(given.after.keys))]
        return answer((*names, "latest", "p", "marker"), *compared)

    def mirror_compare_keyless(self, given: Any) -> Rows:
        counts = Counter(self._digests(given.after))
        counts.subtract(self._digests(given.before))
        return answer(("k0", "k1", "n"), *((k, k, n) for k, n in counts.items() if n))

    def mirror_count_keyed(self, given: Any) -> Rows:
        found = self._select(given.changed)
        markers = Counter(marker for (marker,) in found.of(["marker"]))
        published = sum(p for (p,) in found.of(["p"]))
        before = len(self._select(given.snapshot).rows) if given.snapshot else published
        counted = (markers[0] + markers[4], markers[1], markers[2], markers[None], before)
        return answer(("inserted", "updated", "deleted", "refused", "rows_before"), counted)

    def mirror_count_keyless(self, given: Any) -> Rows:
        changes = [n for (n,) in self._select(given.changed).of(["n"])]
        new, gone = sum(n for n in changes if n > 0), -sum(n for n in changes if n < 0)
        before = len(self._select(given.snapshot).rows)
        names = ("inserted", "updated", "deleted", "refused", "rows_before")
        return answer(names, (new, 0, gone, 0, before))

    def _range(self, rows: FileRange) -> Rows:
        found = self._select(rows.relation)
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

    def mirror_load(self, given: Any) -> Rows:
        return landed(given.columns, self._select(given.table).of(names_of(given.columns)))

    def mirror_changes_keyed(self, given: Any) -> Rows:
        columns, plan = given.columns, given.plan
        keys = plan.definition.key_columns
        latest, changed = self._range(given.rows), self._select(plan.changed)
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

    def mirror_changes_keyless(self, given: Any) -> Rows:
        changed = self._select(given.plan.changed)
        left = {key: n for key, n in changed.of(["k0", "n"]) if n > 0}
        found = []
        for row in self._range(given.rows).of(names_of(given.columns)):
            if left.get(row, 0):
                left[row] -= 1
                found.append(row)
        return landed(given.columns, found)

    def mirror_write_files(self, given: Any) -> None:
        folder, found = local_path(given.url), self._select(given.rows)
        assert folder
        folder.mkdir(parents=True, exist_ok=True)
        for number, start in enumerate(range(0, max(1, len(found.rows)), ROWS_PER_FILE)):
            part = replace(found, rows=found.rows[start : start + ROWS_PER_FILE])
            write_file(folder / f"part-{number}.parquet", part)

    def mirror_count_files(self, given: Any) -> Rows:
        folder = local_path(given.url)
        assert folder
        counts: Counter[Row] = Counter()
        for file in folder.iterdir():
            rows = read_file(file)
            is_marked = given.plan.is_marked
            markers = rows.of([ROW_MARKER]) if is_marked else [(None,)] * len(rows.rows)
            counts.update((file.name, marker) for (marker,) in markers)
        return answer(("file", "marker", "found"), *((*k, n) for k, n in counts.items()))
