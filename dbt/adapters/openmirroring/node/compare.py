"""2. Comparing two snapshots, and checking whether their keys can be published."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING

from dbt.adapters.openmirroring.landing_zone.batch import RowCounts, TableDefinition
from dbt.adapters.openmirroring.landing_zone.published_table import PublishedTable
from dbt.adapters.openmirroring.landing_zone.records import Journal
from dbt.adapters.openmirroring.node.config import NodeConfig
from dbt.adapters.openmirroring.node.plan import published_columns
from dbt.adapters.openmirroring.node.snapshot.reuse import FileRange, NextSnapshot
from dbt.adapters.openmirroring.node.snapshot.scratch_tables import CHANGED, ScratchTables
from dbt.adapters.openmirroring.node.warehouse import Warehouse
from dbt.adapters.openmirroring.spark.relation import OpenMirroringRelation
from dbt.adapters.openmirroring.text.errors import RunError
from dbt.adapters.openmirroring.types.columns import LandingColumn, ValueCheck, value_checks

if TYPE_CHECKING:
    import agate

# how many columns a message names
_FEW = 5


@dataclass(frozen=True)
class Side:
    """One of the two sets of rows in a comparison.

    Args:
        values: columns whose values are compared, in the order of the next snapshot. None stands
            for a column that this side does not have; its value counts as NULL
        checks: checks of these rows; a row that does not pass them has no key and no digest
    """

    rows: FileRange
    keys: tuple[LandingColumn, ...]
    values: tuple[LandingColumn | None, ...]
    checks: tuple[ValueCheck, ...] = ()


@dataclass(frozen=True)
class Comparison:
    """The differences between two snapshots.

    Args:
        changed: SQL of a relation with the changes; None if nothing was compared. With a key, it
            has the columns k0, k1, ... (the key as it lands) and `marker` (the row marker; NULL
            for a key that cannot be published). Without a key, k0 and k1 are the digest of a row
            (NULL for rows that cannot be published), and n is how many such rows are new
            (positive) or deleted (negative)
        in_full: `changed` also has the column `latest` with the new row. It then contains every
            compared key, and the marker is -1 where nothing changed
    """

    rows: RowCounts
    changed: str | None = None
    in_full: bool = False


@dataclass(frozen=True)
class Comparer:
    """Counts the rows that a publication would contain.

    Args:
        definition: the new definition of the mirrored table
        snapshot: the rows that were published last; the relation may be missing
        history_keys: SQL of the key of a dbt snapshot; empty for other nodes
        left: why new rows do not replace all published rows with their keys, and a remedy; None
            if they do, and for a next snapshot that was not made of new rows
    """

    warehouse: Warehouse
    scratch: ScratchTables
    published: PublishedTable
    options: NodeConfig
    definition: TableDefinition
    snapshot: OpenMirroringRelation
    built: NextSnapshot
    history_keys: tuple[str, ...] = ()
    left: tuple[str, str] | None = None

    def load(self) -> RowCounts:
        """Count the rows of a full load.

        Raises:
            DbtRuntimeError: if keys are NULL or not unique, or if values cannot be mirrored
        """
        is_small = self.warehouse.is_small(self.built.table, self.built.description)
        [counts] = self.warehouse.read(
            "mirror_count_load",
            table=self.built.table,
            keys=self._keys,
            is_small=is_small,
            checks=self._checks,
        ).rows
        if counts["refused"]:
            raise self._refusal()
        return RowCounts(inserted=int(counts["inserted"]))

    def changes(self, journal: Journal) -> Comparison:
        """Find the rows that are new, changed or deleted since the publication of a journal.

        Only the key and the digest of each row are shuffled, once, before rows are grouped. A
        partial aggregation before the shuffle would not help, because most keys occur once there.

        Raises:
            DbtRuntimeError: if keys are NULL or not unique, or if values cannot be mirrored
            SnapshotMismatchError: if the snapshot does not have the rows that were published
        """
        equal_rows = self.built.reuse.equal_rows
        if equal_rows is not None:
            self.published.verify_rows(journal, equal_rows)
            return Comparison(RowCounts())
        is_keyed = bool(self.definition.key_columns)
        is_small = self.warehouse.is_small(
            self.built.table, self.built.description, journal.batch.table_rows
        )
        changed = self._changed(journal, is_small)
        is_counted_by_key = is_small and is_keyed and self.built.reuse.compares_all
        counts = self.warehouse.read(
            "mirror_count_keyed" if is_keyed else "mirror_count_keyless",
            changed=changed,
            snapshot=None if is_counted_by_key else self.snapshot,
        ).rows[0]
        self.published.verify_rows(journal, int(counts["rows_before"] or 0))
        if counts["refused"]:
            raise self._refusal()
        if self._repeats_keys(changed, int(counts["inserted"])):
            raise self._bad_keys()
        rows = RowCounts(
            **{name: int(counts[name]) for name in ("inserted", "updated", "deleted")}
        )
        return Comparison(rows, changed, is_small and is_keyed)

    def _changed(self, journal: Journal, is_small: bool) -> str:
        """Return a table of the changes; a query if the tables are small, as files take longer."""
        published = published_columns(journal.batch.definition)
        keys = self.definition.key_columns
        # the keys 0.0 and -0.0 are equal in the comparison, but they land differently
        compared = [c for c in self.built.columns if c.name not in keys]
        compared += [c for c in self.built.columns if c.name in keys and c.is_float]
        rows = self.built.reuse.after(self.built.table)
        after = self._side(rows, self.built.columns, compared, self._checks)
        before = self._side(self.built.reuse.before(self.snapshot), published, compared)
        query = self.warehouse.sql(
            "mirror_compare_keyed" if keys else "mirror_compare_keyless",
            after=after,
            before=before,
            is_small=is_small,
            insert_marker=self.options.insert_marker,
        )
        return f"({query})" if is_small else str(self.scratch.keep(CHANGED, query))

    def _side(
        self,
        rows: FileRange,
        columns: Sequence[LandingColumn],
        compared: Sequence[LandingColumn],
        checks: tuple[ValueCheck, ...] = (),
    ) -> Side:
        present = {column.name: column for column in columns}
        values = tuple(present.get(column.name) for column in compared)
        return Side(rows, _of(columns, self.definition.key_columns), values, checks)

    def _repeats_keys(self, changed: str, inserted: int) -> bool:
        """Check whether a new key also occurs in a file that was not compared."""
        if not (self._keys and inserted and self.built.reuse.may_repeat_keys):
            return False
        found = self.warehouse.read(
            "mirror_new_keys_elsewhere", table=self.built.table, changed=changed, keys=self._keys
        )
        return len(found.rows) > 0

    @cached_property
    def _keys(self) -> tuple[LandingColumn, ...]:
        return _of(self.built.columns, self.definition.key_columns)

    @cached_property
    def _checks(self) -> tuple[ValueCheck, ...]:
        return value_checks(
            self.built.columns,
            self.definition.delimited is not None,
            self.warehouse.adapter.connections.spark_major(),
        )

    def _refusal(self) -> Exception:
        """Return the error for keys or values that some readers of the mirror cannot read."""
        if not self._checks:
            return self._bad_keys()
        examples = self.warehouse.read(
            "mirror_bad_values", table=self.built.table, keys=self._keys, checks=self._checks
        )
        if not examples.rows:
            return self._bad_keys()
        # rows have the number of a check, how many values have failed it, one of them, and its key
        told, names = [], self.definition.key_columns
        rows = (tuple(row) for row in examples.rows)
        for number, failed in groupby(rows, lambda row: int(row[0])):
            check, found = self._checks[number], list(failed)
            how_many = "1 row" if int(found[0][1]) == 1 else f"{found[0][1]} rows"
            shown = "; ".join(
                f"{value} ({_key(names, key)})" if key else str(value)
                for _, _, value, *key in found
            )
            told.append(
                f"The column {check.column.quoted} has {check.finding} in {how_many}, e.g. "
                f"{shown}. {check.remedy}."
            )
        few, more = told[:_FEW], len(told) - _FEW
        if more > 0:
            few.append(f"The same holds for {more} more.")
        few.append("Not everybody could read them in the mirror, so nothing was published.")
        return RunError(" ".join(few), code=self._checks[int(examples.rows[0][0])].code)

    def _bad_keys(self) -> Exception:
        """Return the error for keys that are NULL or not unique."""
        keys: Sequence[str] = self.history_keys or self.definition.key_columns
        if self.history_keys:
            examples = self.warehouse.read(
                "mirror_repeated_versions",
                table=self.built.table,
                version=self._keys[0],
                keys=keys,
            )
        else:
            left = self._left_rows()
            if left:
                return left
            examples = self.warehouse.read(
                "mirror_bad_keys", table=self.built.table, keys=self._keys
            )
        how_many, *_ = examples.rows[0]  # how many such keys there are, before a few of them
        found = listed(keys, examples.exclude([examples.column_names[0]]))
        return RunError(
            f"{how_many} of the keys ({', '.join(keys)}) are NULL or not unique, e.g. "
            f"{found}. The service would apply a later change to the wrong rows, so nothing was "
            "published. Make the model's rows unique, or set another `unique_key`.",
            code="OM301",
        )

    def _left_rows(self) -> Exception | None:
        """Return the error for new rows beside published rows with their keys, if any."""
        journal, keys = self.published.last, self.definition.key_columns
        if not journal or not self.left:
            return None
        published = {c.name: c for c in published_columns(journal.batch.definition)}
        if not published.keys() >= set(keys):
            return None
        examples = self.warehouse.read(
            "mirror_left_rows",
            table=self.built.table,
            snapshot=self.snapshot,
            keys=self._keys,
            published_keys=[published[key.name] for key in self._keys],
            partition_by=self.options.partition_by,
        )
        if not examples.rows:
            return None
        how_many, *_ = examples.rows[0]
        found = []
        for _, *values, before, new in (tuple(row) for row in examples.rows):
            places = f"published in {before}, new in {new}" if new else "published and new"
            found.append(f"{_key(keys, values)} ({places})")
        why, remedy = self.left
        return RunError(
            f"{how_many} of the keys ({', '.join(keys)}) are in two rows: a new row, and the "
            f"published row, which {why}, e.g. {'; '.join(found)}. Nothing was published. "
            f"{remedy}",
            code="OM302",
        )


def _of(columns: Sequence[LandingColumn], names: Sequence[str]) -> tuple[LandingColumn, ...]:
    by_name = {column.name: column for column in columns}
    return tuple(by_name[name] for name in names)


def why_left(options: NodeConfig, predicates: Sequence[str]) -> tuple[str, str] | None:
    """Return why an incremental model may leave a published row beside a new row with its key.

    Args:
        predicates: SQL conditions that a new row must meet to match a row of the snapshot

    Returns:
        the end of a sentence about the published row, and a remedy; None if new rows replace all
        rows with their keys
    """
    strategy = options.incremental_strategy
    if strategy in ("insert_overwrite", "microbatch"):
        return (
            f"is in another partition, so that {strategy} leaves it",
            "Set `incremental_strategy` to merge or delete+insert, which find the published "
            "row by its key; or let the model select all rows of its old partition too.",
        )
    if strategy == "append":
        return (
            "the strategy append leaves",
            "Set `incremental_strategy: merge`, or let the model select rows with new keys only.",
        )
    if predicates:
        return (
            "`incremental_predicates` leave out",
            "Let them include all rows that new rows replace, or remove them.",
        )
    return None


def listed(names: Sequence[str], examples: agate.Table) -> str:
    """Return a few keys, each with the number of its rows."""
    keys = []
    for *values, count in (tuple(row) for row in examples.rows):
        keys.append(f"{_key(names, values)} ({count} {'row' if count == 1 else 'rows'})")
    return "; ".join(keys)


def _key(names: Sequence[str], values: Sequence[object]) -> str:
    return ", ".join(
        f"{name}={'NULL' if value is None else value}"
        for name, value in zip(names, values, strict=True)
    )
