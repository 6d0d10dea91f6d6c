"""2. The comparison of two definitions of a table."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from dbt.adapters.openmirroring.landing_zone.batch import TableDefinition
from dbt.adapters.openmirroring.text.shown import shown


@dataclass(frozen=True)
class Change:
    """A difference between the published definition and the new one.

    Args:
        kind: the suffix of the macro that decides what to do, `mirror_on_<kind>`
        detail: the description for the user
    """

    kind: str
    detail: str

    def __post_init__(self) -> None:
        # the published definition comes from a record, which others can edit
        object.__setattr__(self, "detail", shown(self.detail))


def changes_between(published: TableDefinition, wanted: TableDefinition) -> list[Change]:
    """Return the changes between two definitions of a table; an empty list if they are equal.

    Names are compared with their case, because the mirror's Delta table and the `keyColumns` are
    case sensitive. Spark is not.
    """
    before = {column.name: column.landed_type for column in published.columns}
    after = {column.name: column.landed_type for column in wanted.columns}
    recased = {
        old: new
        for old in before.keys() - after.keys()
        for new in after.keys() - before.keys()
        if old.lower() == new.lower()
    }
    dropped = [name for name in before if name not in after and name not in recased]
    added = [name for name in after if name not in before and name not in recased.values()]
    retyped = [name for name in after if name in before and before[name] != after[name]]

    changes = _format_changes(published, wanted)
    if published.key_columns != wanted.key_columns:
        keys = f"{_names(published.key_columns)} to {_names(wanted.key_columns)}"
        changes.append(Change("key_columns_changed", f"key columns changed from {keys}"))
    if dropped:
        changes.append(Change("columns_dropped", f"column dropped: {_names(dropped)}"))
    if recased:
        cases = ", ".join(f"{old} to {new}" for old, new in sorted(recased.items()))
        changes.append(Change("column_case_changed", f"case of a column changed: {cases}"))
    if retyped:
        types = ", ".join(f"{name} from {before[name]} to {after[name]}" for name in retyped)
        changes.append(Change("column_types_changed", f"column type changed: {types}"))
    if added:
        kind = "declared_columns_changed" if wanted.delimited else "columns_added"
        changes.append(Change(kind, f"column added: {_names(added)}"))
    if not changes and list(before) != list(after):
        kind = "declared_columns_changed" if wanted.delimited else "columns_reordered"
        changes.append(Change(kind, "columns reordered"))
    elif not changes and published.columns != wanted.columns:
        changes.append(Change("spark_types_changed", "types changed in Spark only"))
    return changes


def _format_changes(published: TableDefinition, wanted: TableDefinition) -> list[Change]:
    """Return the changes in `_metadata.json` other than columns and keys."""
    kind = "landing_format_changed"
    if published.landing_format != wanted.landing_format:
        formats = f"{published.landing_format} to {wanted.landing_format}"
        return [Change(kind, f"landing format changed from {formats}")]
    before, after = (_format_options(definition) for definition in (published, wanted))
    return [
        Change(kind, f"{name} changed from {before[name]!r} to {after[name]!r}")
        for name in before
        if before[name] != after[name]
    ]


def _format_options(definition: TableDefinition) -> dict[str, str]:
    options = {
        "file_detection": definition.file_detection,
        "default_row_marker": definition.default_row_marker,
    }
    return options | (asdict(definition.delimited) if definition.delimited else {})


def _names(columns: tuple[str, ...] | list[str]) -> str:
    return ", ".join(columns) or "none"
