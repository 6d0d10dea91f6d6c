"""Findings about Spark and dbt, in the words of messages, for rooms that know neither."""

from __future__ import annotations

# what must be able to use the URL of a landing zone in OneLake
DRIVER = "Spark's driver for OneLake"


def other_project(folder: str, project: str, node: str) -> str:
    """Say who else a table folder belongs to."""
    return f"The table folder {folder} belongs to the dbt project {project!r} (node {node})."


def other_batch(
    table: object, journal: str, last: str, when_and_by: str, found: str | None
) -> str:
    """Say that a snapshot has another batch than `last`, or none that was published."""
    what = f"batch {found}" if found else "no published snapshot"
    said = (
        f"{journal} says that batch {last} was published last ({when_and_by}), but Spark has "
        f"{what} of {table}."
    )
    if found and found > last:  # batch ids begin with a time
        return (
            f"{said} Somebody else has published this table, or it was published to another "
            "landing zone since. Nothing was changed."
        )
    return (
        f"{said} Somebody else has published this table, or this is another "
        "warehouse, or the warehouse was lost. Nothing was changed. If several people publish "
        "here, set a `schema` of your own in the profile. Otherwise run with the warehouse that "
        f"has this batch, or put it back.{_restored(table, found)}"
    )


def _restored(table: object, found: str | None) -> str:
    """Say how the published rows of a table come back to Spark."""
    if found is None:
        return (
            " Or set `restore_snapshots: true` in the target: then the rows that were published "
            "are brought back from the mirrored table."
        )
    return (
        f" Or `dbt run-operation mirror_restore --args '{{table: {table}}}'` brings the rows that "
        "were published back from the mirrored table, in place of those that Spark has."
    )


def other_rows(table: object, rows: int, published: int) -> str:
    """Say that a snapshot has another number of rows than were published."""
    return (
        f"Spark has {rows:,} rows of {table}, but {published:,} were published: somebody else "
        "has written to the table in Spark, or a hook has, or files of it are lost. Nothing was "
        "changed."
    )


def other_state(table: object, published_at: str) -> str:
    """Say that somebody has written to a snapshot since it was published."""
    return (
        f"The rows of {table} in Spark are not those that were published last ({published_at}): "
        "somebody else has written to the table, or a hook has, for example `on-run-end`, or "
        "files of it are lost. Nothing was changed."
    )


def not_withdrawn(batch: str, file: str) -> str:
    """Say that a batch whose rows were refused is published already, in part at least."""
    return (
        f"Batch {batch} cannot be withdrawn: {file} is published or gone already. Remove what "
        "keeps Spark from storing its rows, then run again."
    )


def no_staged_files(folder: str) -> str:
    """Say that no file of a batch is found where it was written."""
    return (
        f"Spark has written the files of this batch to {folder}, but dbt finds none there: the "
        "two do not share this folder. Nothing was published. Set `landing_zone`, or for OneLake "
        "`staging_location`, to a place that all of Spark and the machine of dbt can reach."
    )


def other_staged_files(folder: str, finding: str) -> str:
    """Say that the files of a batch do not have the rows that were planned."""
    return (
        f"The files that Spark has written to {folder} have, as far as dbt sees them, {finding}. "
        "Nothing was published. If Spark runs on several machines, all of them must reach this "
        "folder: set `landing_zone`, or for OneLake `staging_location`, accordingly."
    )


def unreadable_staging(folder: str, reason: object) -> str:
    """Say that the files for an upload cannot be read."""
    return (
        f"Cannot read what Spark has written to {folder}: {reason}. `staging_location` must be a "
        "folder that Spark and dbt share."
    )
