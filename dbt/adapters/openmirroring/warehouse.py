"""Tables that live for a run, and folders that a killed process leaves without a table."""

from __future__ import annotations

import re
import shutil
from collections.abc import Collection
from pathlib import Path

# a snapshot in the making: <identifier>__next_<batch id>
NEXT_SUFFIX = "__next_"

# the rows that a snapshot is to have in place of others, if its format can change it
PART_SUFFIX = "__part_"

# what an incremental model has computed
NEW_ROWS_SUFFIX = "__new_rows_"

_SUFFIXES = (NEXT_SUFFIX, PART_SUFFIX, NEW_ROWS_SUFFIX)

_BATCH_ID = r"\d{14}[0-9a-f]{8}"


def is_made_for(name: str, identifier: str, suffix: str) -> bool:
    """Whether a table was made for a run that publishes another; not by a user, whatever its name.

    Args:
        identifier: of the table that is published
        suffix: what the name of such a table has before the id of its batch
    """
    pattern = re.escape(f"{identifier}{suffix}") + _BATCH_ID
    return re.fullmatch(pattern, name, re.IGNORECASE) is not None


def tidy(warehouse: Path, schema: str, identifier: str, tables: Collection[str]) -> None:
    """Let every folder be that of a table: Spark refuses to make a table where there is one.

    A process may be killed after a CTAS has written files, after a table was dropped, but not its
    folder, and after a table's folder was renamed, but not the table.

    Args:
        warehouse: that nobody else is using
        schema, identifier: of a table that is to be built
        tables: what the catalog has in the schema
    """
    schema, identifier = schema.lower(), identifier.lower()
    home = warehouse if schema == "default" else warehouse / f"{schema}.db"
    known = {name.lower() for name in tables}
    for suffix in _SUFFIXES:
        for folder in home.glob("*"):
            if is_made_for(folder.name, identifier, suffix) and folder.name not in known:
                shutil.rmtree(folder)
    folder = home / identifier
    if folder.is_dir() and identifier not in known:
        renamed = [
            name
            for name in known
            if is_made_for(name, identifier, NEXT_SUFFIX) and not (home / name).exists()
        ]
        if renamed:
            folder.rename(home / renamed[0])
        else:
            shutil.rmtree(folder)
