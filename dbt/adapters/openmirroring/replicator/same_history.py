"""The check that a table folder and its mirrored table have the same history."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from dbt.adapters.openmirroring.replicator.errors import TableError
from dbt.adapters.openmirroring.replicator.folder import DataFile, FilledTable
from dbt.adapters.openmirroring.replicator.mirrored_table import MirroredTable


def check_same_history(
    filled: FilledTable,
    table: MirroredTable,
    files: Iterable[DataFile],
    digest: Callable[[DataFile], str],
) -> None:
    """Check that every file with an applied number is the one that was applied.

    A folder that was put back from a backup lacks files that the table has. The numbers of new
    files then begin again where the backup ends, and such files would be skipped.

    Args:
        filled: the record in the table folder
        table: the mirrored table that was made from the folder
        files: the data files in the folder
        digest: returns the digest of a file

    Raises:
        TableError: if the folder is older or newer than the table, or has another file with a
            number that was applied
    """
    applied = table.files_applied
    if filled.applying is None:  # nothing is known of it
        return
    if not filled.applied <= applied <= filled.applying:
        age = "older" if applied > filled.applying else "newer"
        raise _other_history(
            f"The table folder is {age} than the mirrored table: {filled.applying:,} of its files "
            f"were applied, and the table has {applied:,}. One of them was put back from a backup "
            "or copied from elsewhere, so a new file may have a number that was applied before.",
            table,
        )
    if table.by_name:
        return
    for file in files:
        number = file.number or 0
        is_other = number == table.last_number and filled.last not in ("", digest(file))
        if number < filled.applied or is_other:
            raise _other_history(
                f"{file.name} has a number that was applied before, with another file.", table
            )


def _other_history(finding: str, table: MirroredTable) -> TableError:
    return TableError(
        "FileNumberReused",
        f"{finding} No file is applied. Put folder and table back from one backup. Or: "
        f"{table.new_load()} With dbt, `dbt run-operation mirror_rebuild` publishes the rows that "
        "Spark has, and a run of the node with `--full-refresh` those that it computes anew.",
    )
