"""The ways out that messages name: what to run, and what that publishes.

They name commands of dbt, and Spark. Some rooms that ask for them know neither.
"""

from __future__ import annotations

# the folder of the user, in which paths begin
PROJECT = "the dbt project"

# what finishes the batches of killed runs, and what drops the tables that no node has any more
RECOVER = "`dbt run-operation mirror_recover`"
DROP_ORPHANS = "dbt run-operation mirror_drop_orphans"

# the publication that follows when a table folder was deleted
LOAD_ANEW = (
    "run again to publish a full load of the rows that the node then has in Spark, in place of "
    "those that the mirrored table has"
)
FULL_LOAD = "run with --full-refresh to publish a full load of the rows that the node computes"

# what publishes the changes that others make
FOREIGN_CHANGES = (
    "If others are to change the table, as a package that fills it at the end of each run, set "
    "`on_foreign_changes: publish`, which publishes the difference; or `mirror: false`."
)


def withdraw(manifest: str) -> str:
    """Return the way out of a committed batch that cannot be completed."""
    return (
        f"Delete {manifest} and run again: the batch is computed again. If a part of it was "
        "published already, that run says so."
    )


def compute_anew(node: str, rows: int) -> str:
    """Return the way out that computes the rows of a node anew, and what it publishes.

    Args:
        node: the unique id of the node
        rows: the number of rows of the table, which it replaces
    """
    name = ".".join(node.split(".")[2:])
    return (
        f"`dbt build --full-refresh --select {name}` publishes the rows that the node computes "
        f"anew, in place of the {rows:,} rows that were published: those that "
        "it cannot compute again are lost, as the history of a dbt snapshot."
    )


def publish_present(table: object, rows: str = "the rows") -> str:
    """Return the way out that computes nothing, and what it publishes."""
    return (
        f"`dbt run-operation mirror_rebuild --args '{{table: {table}}}'` publishes {rows} that "
        "Spark has, and computes nothing."
    )
