"""How a publication starts: what the protocol asks for, and what a user is told if it refuses."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NoReturn

from dbt_common.exceptions import CompilationError, DbtRuntimeError

from dbt.adapters.openmirroring.destination.destination import Destination, is_another_zone
from dbt.adapters.openmirroring.landing_zone.errors import SnapshotMismatchError
from dbt.adapters.openmirroring.landing_zone.published_table import PublishedTable
from dbt.adapters.openmirroring.landing_zone.publisher import Publication
from dbt.adapters.openmirroring.node.mirrored_rows import adopt_foreign_changes, is_of
from dbt.adapters.openmirroring.node.node import Node, refuse_stale_compilation
from dbt.adapters.openmirroring.node.plan import FULL_REFRESH
from dbt.adapters.openmirroring.node.snapshot.scratch_tables import ScratchTables, refuse_lost
from dbt.adapters.openmirroring.node.snapshot.snapshot import PublishedRows, verify_state
from dbt.adapters.openmirroring.protocol.actions import (
    Compare,
    Done,
    Fetch,
    Look,
    Rebuild,
    Refused,
    Start,
    Step,
)
from dbt.adapters.openmirroring.protocol.facts import Intent, Publish, PublishHeld, Restore, Rows
from dbt.adapters.openmirroring.protocol.rules import next_action
from dbt.adapters.openmirroring.protocol.start import published_build
from dbt.adapters.openmirroring.spark.relation import ZONE_PROPERTY
from dbt.adapters.openmirroring.text.errors import RefusedError


def intent_of(node: Node, intent: type[Publish] = Publish) -> Publish:
    """Return what a run wants of a node by its configuration."""
    return intent(
        FULL_REFRESH if node.is_full_refresh else None,
        extends=node.reads_itself,
        adopts=node.options.on_foreign_changes == "publish",
        is_held=node.options.is_held,
        has_hooks=node.has_post_hooks,
    )


def start(
    intent: Intent,
    node: Node,
    destination: Destination,
    records: PublishedTable,
    scratch: ScratchTables,
    published: PublishedRows,
) -> tuple[Start | Done, PublishedRows]:
    """Let the protocol decide whether and how an intent goes on.

    Args:
        records: in a dry run, they are only read
        published: the rows that were published last, as Spark has them

    Returns:
        that, and the rows to compare with

    Raises:
        DbtRuntimeError: if the protocol refuses to go on
    """
    is_own = records.last is not None and is_of(node, records.last)
    known: dict[str, Any] = {"is_own": is_own}
    refusal: DbtRuntimeError | None = None
    while True:
        published = replace(published, facts=replace(published.facts, **known))
        match next_action(published.facts, intent):
            case Look.AT_OTHER_FOLDERS:
                known = {"elsewhere": _elsewhere(node, destination, records, published)}
            case Look.AT_FOLDER:
                known = {"has_folder": True}
                try:
                    refuse_lost(node.warehouse, [node.target])
                except DbtRuntimeError as error:
                    known, refusal = {"has_folder": False}, error
            case Look.AT_ROWS:
                known = {"rows": Rows.PUBLISHED}
                # Hooks and holds keep these rows as those that were published, before anything
                # compares them. No later run could take that back.
                counts = isinstance(intent, Publish) and (
                    intent.adopts or intent.is_held or node.has_own_code
                )
                lost = DbtRuntimeError if isinstance(intent, Restore) else SnapshotMismatchError
                try:
                    published = verify_state(node.warehouse, records, published, counts)
                except lost as error:
                    known, refusal = {"rows": Rows.FOREIGN}, error
            case Step.ADOPT:
                published = adopt_foreign_changes(node, destination, records, published, scratch)
                known = {"rows": Rows.PUBLISHED}
            case Step.FORGET_HELD:
                assert isinstance(records, Publication), "a dry run publishes no held rows"
                records.delete_held_record()
                known = {"held": None}
            case Refused() as why:
                _refuse(why, intent, node, records, published, refusal)
            case Compare() | Rebuild() | Fetch() | Done() as end:
                return end, published
            case move:
                raise AssertionError(f"{move} is no start")


def look_at_rows(node: Node, records: PublishedTable, published: PublishedRows) -> PublishedRows:
    """Look again at the rows that were published last, after code that may have changed them."""
    if published_build(published.facts) and not published.is_ahead:
        rows = Rows.PUBLISHED
        try:
            published = verify_state(node.warehouse, records, published, counts_unknown=True)
        except SnapshotMismatchError:
            rows = Rows.FOREIGN
        published = replace(published, facts=replace(published.facts, rows=rows))
    return published


def _elsewhere(
    node: Node, destination: Destination, table: PublishedTable, published: PublishedRows
) -> str:
    """Return how the rows of Spark were published elsewhere; empty if they were not.

    They were published to another folder, or to another landing zone.
    """
    journal, build = table.last, published.build
    assert journal, "a table without a journal has left no folder"
    assert build, "rows without a build were not published"
    former = table.former_folder(build)
    if former:
        return f"the table folder was {former.path} before"
    # other nodes extend rows, which may be those of another warehouse
    if node.reads_itself or node.is_history or published.relation is None:
        return ""
    if any(build in (batch.id, batch.build) for batch in journal.history):
        return ""  # they were published here, and somebody else has published since
    zone_id = destination.zone_id
    found = node.warehouse.properties(published.relation).get(ZONE_PROPERTY, zone_id)
    is_elsewhere = is_another_zone(found, zone_id)
    return "was published to another landing zone meanwhile" if is_elsewhere else ""


def _refuse(
    why: Refused,
    intent: Intent,
    node: Node,
    records: PublishedTable,
    published: PublishedRows,
    found: DbtRuntimeError | None,
) -> NoReturn:
    target = node.target
    match why:
        case Refused.FOREIGN | Refused.FOLDER_LOST:
            assert found, "a look has found it"
            raise found
        case Refused.STALE:
            raise refuse_stale_compilation()
        case Refused.OUT_OF_STEP:
            records.verify(published.build, rebuilds=False, is_there=published.is_there)
        case Refused.RECORD_DAMAGED:
            assert isinstance(records, Publication), "a dry run publishes no held rows"
            records.check_held_record()
        case Refused.OTHER_BUILD:
            assert isinstance(intent, PublishHeld)
            raise RefusedError(
                f"Another run has built {target} since its tests started, so it stays held. "
                "Run its tests again.",
                code="OM320",
            )
        case Refused.NO_TABLE:
            raise CompilationError(
                f"Spark has no table {target}, so there is nothing to publish. Run its node."
            )
        case Refused.UNFINISHED:
            raise CompilationError(
                f"The last run of {target} has failed or was killed, so its rows may not be "
                "right. Nothing was published. Run its node, which publishes its rows or says "
                "what is wrong with them."
            )
        case Refused.NOT_PUBLISHED:
            raise CompilationError(f"{target} was not published yet. Run its node.")
        case Refused.HELD:
            raise CompilationError(
                f"{target} has held rows, which the mirrored table must not have yet. Nothing "
                "was changed. Publish them first: `dbt run-operation mirror_publish`."
            )
        case Refused.OTHER_FORMAT:
            assert records.last, "it was published"
            raise CompilationError(
                f"{target} was published as {records.last.batch.definition.landing_format}, and "
                "its `landing_format` or `delimited` is another one now "
                f"({node.options.landing_format}). Nothing was changed. Run its node, which "
                "rebuilds the mirrored table with all rows."
            )
    raise AssertionError(f"{why} was refused before")
