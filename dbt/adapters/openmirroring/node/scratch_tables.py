"""Tables that live for a run, and folders that a killed process leaves without a table."""

from __future__ import annotations

import re
import shutil
from collections.abc import Collection
from pathlib import Path

from dbt.adapters.openmirroring.landing_zone.batch import BATCH_ID

# What a run has beside a relation, as a table <identifier>__<kind>_<batch id>.
# A snapshot in the making.
NEXT = "next"
# What an incremental model has computed, and the same in the types of the snapshot.
NEW_ROWS, TYPED_ROWS = "new_rows", "typed_rows"
# The keys of what has changed.
CHANGED = "changed"
# The rows of a snapshot that may change, and those in their place.
BEFORE, AFTER = "before", "after"
# The latter in a format that can change a snapshot: needed until it has taken them.
PART = "part"

KEPT_ROWS = (NEW_ROWS, TYPED_ROWS, CHANGED, BEFORE, AFTER, PART)


def name_beside(identifier: str, kind: str, batch_id: str) -> str:
    """The name of a table that a run has beside that which it publishes."""
    return f"{identifier}__{kind}_{batch_id}"


def is_made_for(name: str, identifier: str, kind: str) -> bool:
    """Whether a table was made for a run that publishes another; not by a user, whatever its name.

    Args:
        identifier: of the table that is published
    """
    pattern = re.escape(name_beside(identifier, kind, "")) + BATCH_ID
    return re.fullmatch(pattern, name, re.IGNORECASE) is not None


def is_plain(name: str) -> bool:
    """Whether a name is that of a folder, and not a path to another one."""
    return name not in ("", ".", "..") and not {"/", "\\", "\0"}.intersection(name)


def tidy(warehouse: Path, schema: str, identifier: str, tables: Collection[str]) -> None:
    """Let every folder be that of a table: Spark refuses to make a table where there is one.

    A process may be killed after a CTAS has written files, after a table was dropped, but not its
    folder, and after a table's folder was renamed, but not the table.

    Args:
        warehouse: that nobody else is using
        schema, identifier: of a table that is to be built
        tables: what the catalog has in the schema

    Raises:
        ValueError: a name is a path
    """
    if not is_plain(schema) or not is_plain(identifier):
        raise ValueError(f"{schema!r} or {identifier!r} is a path")
    schema, identifier = schema.lower(), identifier.lower()
    home = warehouse if schema == "default" else warehouse / f"{schema}.db"
    known = {name.lower() for name in tables}
    for kind in (NEXT, *KEPT_ROWS):
        for folder in home.glob("*"):
            if is_made_for(folder.name, identifier, kind) and folder.name not in known:
                shutil.rmtree(folder)
    folder = home / identifier
    if folder.is_dir() and identifier not in known:
        renamed = [
            name
            for name in known
            if is_made_for(name, identifier, NEXT) and not (home / name).exists()
        ]
        if renamed:
            folder.rename(home / renamed[0])
        else:
            shutil.rmtree(folder)
