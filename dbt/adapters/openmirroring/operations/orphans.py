"""Dropping the table folders that belong to no mirrored node any more."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Collection, Mapping, Sequence

from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.openmirroring.landing_zone.errors import MirrorError
from dbt.adapters.openmirroring.landing_zone.inventory import LandedTable
from dbt.adapters.openmirroring.operations.project_tables import (
    ELSEWHERE,
    ORPHAN,
    Outcome,
    ProjectTables,
    TableStatus,
)
from dbt.adapters.openmirroring.text.shown import shown
from dbt.adapters.openmirroring.text.table import terminal_width, text_table

# a text that YAML reads as a name
_PLAIN = re.compile(r"[a-zA-Z_][\w.-]*", re.ASCII)


def drop_orphans(
    tables: ProjectTables,
    dry_run: bool,
    schema: str | None,
    table: str | Sequence[str] | None,
    has_published: Callable[[LandedTable], bool],
) -> Outcome:
    """Drop the table folders that no longer belong to a mirrored node.

    A table that another target, or another project of the same name, may publish is dropped only
    if `table` names it.

    Args:
        dry_run: whether to list them only
        schema: the schema of the folders to drop; None for all schemas of this target
        table: `schema.table`, or several of them, to drop; None for all
        has_published: returns whether Spark has the rows of a table that were published last

    Raises:
        DbtRuntimeError: if a table in `table` is no orphan
    """
    # Spark need not be asked about tables that are named
    statuses = tables.statuses() if table else tables.statuses(has_published=has_published)
    found = [each for each in statuses if each.state in (ORPHAN, ELSEWHERE)]
    given: dict[str, str | Sequence[str]] = {}
    if schema is not None:
        found = [each for each in found if each.schema == schema]
        given["schema"] = schema
    if table is not None:
        names = [table] if isinstance(table, str) else table
        found = _named(found, names)
        given["table"] = names if len(names) > 1 else names[0]
    ours = [each for each in found if table is not None or each.state == ORPHAN]
    others = [each for each in found if each not in ours]
    lines = _listed(ours, "orphan")
    failed: list[str] = []
    if not ours:
        where = "" if schema is None else f" in the schema {shown(schema)!r}"
        lines.append(f"There are no orphans{where}.")
    elif dry_run:
        lines.append(f"Nothing was dropped. To drop them, in the mirror too: {_command(given)}")
    else:
        dropped = [status.table for status in ours if _drop(tables, status, failed)]
        told = f"Dropped {', '.join(dropped)}. Relations in Spark stay."
        lines.append(told if dropped else "Nothing was dropped.")
    if others:
        lines += _listed(others, "not of this target")
        lines.append("Each of these is dropped only if its name is given, as `table`.")
    return Outcome(tuple(lines), tuple(failed))


def _named(found: Sequence[TableStatus], names: Collection[str]) -> list[TableStatus]:
    by_name = {status.table: status for status in found}
    missing = [shown(name) for name in names if name not in by_name]
    if missing:
        raise DbtRuntimeError(
            f"{', '.join(missing)}: no orphan. Nothing was dropped. `dbt run-operation "
            "mirror_drop_orphans` lists the orphans."
        )
    return [by_name[name] for name in names]


def _listed(found: Sequence[TableStatus], headline: str) -> list[str]:
    rows = [(status.table, status.note) for status in found]
    return list(text_table([(headline, ""), *rows], (), terminal_width())) if rows else []


def _drop(tables: ProjectTables, orphan: TableStatus, failed: list[str]) -> bool:
    try:
        dropped = tables.drop(orphan)
    except MirrorError as error:
        failed.append(f"{orphan.table}: {error.msg}")
        return False
    if not dropped:
        failed.append(f"{orphan.table} was published meanwhile, and was not dropped.")
    return dropped


def _command(given: Mapping[str, str | Sequence[str]]) -> str:
    arguments = ", ".join(["dry_run: false", *(f"{k}: {_yaml(v)}" for k, v in given.items())])
    return f"dbt run-operation mirror_drop_orphans --args {shlex.quote(f'{{{arguments}}}')}"


def _yaml(value: str | Sequence[str]) -> str:
    if not isinstance(value, str):
        return f"[{', '.join(map(_yaml, value))}]"
    return value if _PLAIN.fullmatch(value) else json.dumps(value, ensure_ascii=False)
