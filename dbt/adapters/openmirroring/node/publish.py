"""Publishing a node, with the steps of docs/contributing/how-it-works.md in their order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.openmirroring.destination.destination import Destination
from dbt.adapters.openmirroring.node.advance import Table, recover
from dbt.adapters.openmirroring.node.build import build, verify_contract
from dbt.adapters.openmirroring.node.decide import (
    beyond_limit,
    check,
    compare,
    described,
    next_snapshot,
    refuse_deletion,
    too_many_deleted,
)
from dbt.adapters.openmirroring.node.next_rows import NextRows, next_rows
from dbt.adapters.openmirroring.node.node import Node
from dbt.adapters.openmirroring.node.plan import SparkPlan
from dbt.adapters.openmirroring.node.progress import WAITING
from dbt.adapters.openmirroring.node.response import MirrorResponse
from dbt.adapters.openmirroring.node.snapshot.reuse import NextSnapshot, TouchedRows
from dbt.adapters.openmirroring.node.snapshot.scratch_tables import ScratchTables
from dbt.adapters.openmirroring.node.snapshot.snapshot import (
    has_published_columns,
    snapshot_state,
    snapshot_version,
)
from dbt.adapters.openmirroring.node.stage import stage
from dbt.adapters.openmirroring.node.start import Attempt, intent_of
from dbt.adapters.openmirroring.protocol.actions import Done
from dbt.adapters.openmirroring.protocol.facts import (
    NEXT,
    Explain,
    GoAhead,
    Held,
    Publish,
    PublishHeld,
    PublishPresent,
    Recover,
    Settle,
)
from dbt.adapters.openmirroring.protocol.start import (
    goes_ahead,
    hold,
    may_keep_rows,
)
from dbt.adapters.openmirroring.spark.relation import (
    OpenMirroringRelation,
)
from dbt.adapters.openmirroring.spark.table import TableDescription
from dbt.adapters.openmirroring.text.errors import RunError, quoted_text

# why rows are held while their run may still fail
_NOT_ENDED = "because its last run has not ended"


@contextmanager
def begin_attempt(node: Node, destination: Destination) -> Iterator[Attempt]:
    """0. Lock the table of a node, and finish or drop what earlier runs left of it."""
    warehouse, target = node.warehouse, node.target
    with (
        destination.publication(node.table_folder, node.owner) as publication,
        ScratchTables(
            warehouse, target, publication.batch_id, lambda: publication.committed
        ) as scratch,
    ):
        attempt = Attempt(node, destination, publication, scratch)
        attempt.finished = finished = recover(attempt, node.is_full_refresh)
        if finished:
            node.print_line(
                f"Finished batch {finished.batch.id} of {target}, which an earlier run had left"
            )
        attempt.marks = None
        attempt.look()
        yield attempt


def publish(node: Node, destination: Destination) -> MirrorResponse:
    """Build a node and publish its changes, or hold them if the configuration says so.

    Raises:
        DbtRuntimeError: if a step fails. Then nothing was published, or the next run finishes
            the batch
    """
    extends = node.is_incremental
    with begin_attempt(node, destination) as attempt:  # 0
        if not node.options.is_held:
            destination.check_table(attempt.records.table, node.is_full_refresh)
        intent = intent_of(node)
        attempt.start(intent)
        _run_code_before(attempt, intent, extends)
        rows = next_rows(node, attempt.scratch, extends, _reusable(attempt, intent))
        if not goes_ahead(attempt.facts, intent):
            return _publish_rows(attempt, rows)
        if intent.is_held:
            return _hold_rows(attempt, rows)
        _go_ahead(attempt, rows)
        return _publish_snapshot(attempt)


def rebuild(node: Node, destination: Destination) -> MirrorResponse:
    """Publish the rows that a node has in Spark as a rebuild. Nothing is built.

    Raises:
        CompilationError: if Spark has no table of the node
    """
    with begin_attempt(node, destination) as attempt:
        destination.check_table(attempt.records.table, rebuilds=True)
        attempt.start(PublishPresent())
        verify_contract(node, node.target)
        built = described(node, node.target)
        plan = _plan(attempt, built)
        refuse_deletion(node, plan)
        # rows that nobody has published before, whatever build they come from
        held = attempt.held_rows("until mirror_rebuild has ended")
        ahead = hold(attempt.facts, held)
        return commit(attempt, plan, built, held.build, before=lambda: attempt.go_on(ahead))


def publish_held(
    node: Node,
    destination: Destination,
    wait_for_turn: Callable[[], None],
    tested: str | None = None,
) -> MirrorResponse | None:
    """Publish the held rows of a node.

    Args:
        wait_for_turn: returns when the tables before this one are published
        tested: the id of the build that has passed its tests. None publishes any held rows,
            including those held because of `max_deleted`

    Returns:
        the response for dbt, which is that of an earlier run's batch if there was only that to
        finish; None if nothing is held

    Raises:
        DbtRuntimeError: if a step fails. Then nothing was published, or the next run finishes
            the batch
    """
    with begin_attempt(node, destination) as attempt:
        end = attempt.start(PublishHeld(tested))
        if isinstance(end, Done):
            return MirrorResponse.of(attempt.finished.batch) if attempt.finished else None
        verify_contract(node, node.target)  # somebody may have changed the rows since
        destination.check_table(attempt.records.table, attempt.rebuild is not None)
        return _publish_snapshot(attempt, bool(tested), wait_for_turn)


def recover_node(node: Node, destination: Destination) -> None:
    """Finish what an earlier run left of a node, and do nothing else."""
    with begin_attempt(node, destination):
        pass


def keep_held(node: Node, destination: Destination, why: str) -> None:
    """Record in the landing zone why a node stays held."""
    with destination.publication(node.table_folder, node.owner) as publication:
        manifest = publication.pending()
        Table(node.warehouse, node.target, publication, manifest).advance(Explain(why))


def _run_code_before(attempt: Attempt, intent: Publish, extends: bool) -> None:
    """Run the user's code. The rows that were published last stay readable."""
    node, rebuild = attempt.node, attempt.rebuild
    if rebuild:  # nothing is compared, so nothing has to be kept
        node.run_code_before(lambda _: True)
        if node.has_code_before:
            attempt.look_again()
            attempt.start(replace(intent, full_refresh=rebuild))
        return
    if node.has_own_code:
        attempt.verify(rebuilds=False)  # this code cannot be undone if the table is refused later
    if node.has_code_before:
        attempt.run_code(extends)


def _reusable(attempt: Attempt, intent: Publish) -> TableDescription | None:
    """Return the snapshot, if a build may keep rows and files of it; None to consider all rows."""
    facts, warehouse, last = attempt.facts, attempt.warehouse, attempt.records.last
    if not may_keep_rows(facts, intent):
        return None
    if facts.is_ahead:
        found = warehouse.found(attempt.target)
        return warehouse.describe(found) if found and found.is_table else None
    description = attempt.description
    if goes_ahead(facts, intent):
        return description  # the publication compares all rows, whatever the build keeps
    if description is None or last is None or not has_published_columns(description, last):
        return None
    return description


def _publish_rows(attempt: Attempt, rows: NextRows) -> MirrorResponse:
    """Build a node, and publish the difference from the rows that were published last."""
    node = attempt.node
    following, _ = build(node, rows, attempt.scratch, attempt.marks_of_build)  # 1
    verify_contract(node, following)  # 3
    built = next_snapshot(attempt, following, rows)
    plan = _plan(attempt, built)  # 2 and 3
    if plan.is_void:
        return _keep_snapshot(attempt, plan)
    if plan.starts_folder and rows.touched:  # of all rows, only a part was computed
        query = node.warehouse.sql(
            "mirror_with_touched_rows",
            snapshot=node.target,
            replacement=following,
            touched=rows.touched,
            names=[column.quoted for column in built.columns],
        )
        return _publish_rows(attempt, NextRows(query))
    finding = beyond_limit(node, plan)
    if finding:
        _make_snapshot(attempt, following, rows, attempt.held_rows(finding))
        attempt.destination.builds[node.owner.node] = attempt.records.batch_id
        raise too_many_deleted(node, finding)
    return commit(attempt, plan, built, attempt.records.batch_id)


def _publish_snapshot(
    attempt: Attempt, is_limited: bool = True, wait_for_turn: Callable[[], None] = lambda: None
) -> MirrorResponse:
    """Publish the rows of a snapshot that is ahead of the mirror, as they are now."""
    node, build = attempt.node, attempt.facts.marked.build
    assert build, "a snapshot that is ahead has a build"
    built = next_snapshot(attempt, node.target, None)
    plan = _plan(attempt, built)  # 2 and 3
    finding = beyond_limit(node, plan) if is_limited else None
    if finding:
        attempt.go_on(GoAhead(build, replace(attempt.held_rows(finding), build=build)))
        raise too_many_deleted(node, finding)
    if plan.is_void:
        return _keep_snapshot(attempt, plan)

    def wait() -> None:
        node.warehouse.adapter.progress.show_step(WAITING)
        wait_for_turn()

    return commit(attempt, plan, built, build, before=wait)


def commit(
    attempt: Attempt,
    plan: SparkPlan,
    built: NextSnapshot,
    build: str,
    before: Callable[[], None] = lambda: None,
) -> MirrorResponse:
    """4 to 8. Stage and publish what is planned.

    Args:
        build: the id of the build whose rows are published
        before: called when all is staged, before the batch is committed
    """
    node, warehouse, publication = attempt.node, attempt.warehouse, attempt.publication
    assert publication, "a dry run commits nothing"
    files = stage(node, publication, plan, built)  # 4
    before()
    is_in_place = isinstance(built.reuse, TouchedRows)
    version = snapshot_version(warehouse, node.target) if is_in_place else None
    state = None if version else snapshot_state(warehouse, built.table, built.description)
    attempt.manifest = manifest = publication.commit(plan, files, build, version, state)  # 5
    attempt.advance(Recover())  # 6 to 8
    return MirrorResponse.of(manifest.batch)


def _hold_rows(attempt: Attempt, rows: NextRows) -> MirrorResponse:
    """Build a node and make its rows the snapshot, without publishing them."""
    node, why = attempt.node, attempt.node.options.held_until
    unchanged = _go_ahead(attempt, rows)
    if unchanged:
        return unchanged
    if node.has_post_hooks:
        check(attempt, described(node, node.target))
        held = attempt.held_rows(why)
        attempt.go_on(GoAhead(held.build, held))
    attempt.destination.builds[node.owner.node] = attempt.records.batch_id
    return MirrorResponse.held(why)


def _go_ahead(attempt: Attempt, rows: NextRows) -> MirrorResponse | None:
    """Build a node, make its rows the snapshot, and run its post-hooks.

    Returns:
        the response for dbt if the snapshot stays, because it has the same rows in the same files
    """
    node = attempt.node
    is_held, has_hooks = node.options.is_held, node.has_post_hooks
    # until hooks have run, or a publication has ended, the rows may not be right
    held = replace(
        attempt.held_rows(node.options.held_until if is_held else _NOT_ENDED),
        is_finished=is_held and not has_hooks,
    )
    following, _ = build(node, rows, attempt.scratch, attempt.marks_of_build)  # 1
    # Rows that cannot be published are an error of the node that builds them. With post-hooks,
    # only the rows that the hooks leave count.
    if not has_hooks:
        verify_contract(node, following)
    if has_hooks or attempt.facts.is_ahead:
        built = described(node, following)
    else:
        built = next_snapshot(attempt, following, rows)
        if built.reuse.equal_rows is not None:
            planned = compare(attempt, built)
            if planned.is_void:  # nothing has to be held
                _prepare_destination(attempt, planned)
                return _keep_snapshot(attempt, planned)
    check(attempt, built, with_rows=not has_hooks)
    _make_snapshot(attempt, following, rows, held)
    if has_hooks:
        _run_post_hooks(node)
        attempt.look_again()
        attempt.go_on(GoAhead(held.build, held))
        verify_contract(node, node.target)
    return None


def _keep_snapshot(attempt: Attempt, plan: SparkPlan) -> MirrorResponse:
    """Keep a snapshot whose rows were published last, and drop a build that has the same."""
    attempt.go_on(Settle())
    return MirrorResponse.unchanged(plan)


def _make_snapshot(
    attempt: Attempt, built: OpenMirroringRelation, rows: NextRows, held: Held
) -> None:
    """Make a build the snapshot before it is published. The rows published last stay beside it.

    Args:
        built: the next snapshot; or the rows that the snapshot takes in place
    """
    touched = rows.touched
    if not touched:  # it may be the only table with the rows, once the snapshot is dropped
        attempt.scratch.release(NEXT)
    attempt.taking = (built, touched) if touched else None
    attempt.go_on(hold(attempt.facts, held, bool(touched)))


def _run_post_hooks(node: Node) -> None:
    """Run the post-hooks of a node, whose build is the snapshot already."""
    try:
        node.run_post_hooks()
    except DbtRuntimeError as error:
        raise RunError(
            f"A post-hook failed: {quoted_text(error)}\n{node.target} has the new rows in Spark, "
            "and the mirror keeps those published last.",
            code="OM415",
        ) from error


def _plan(attempt: Attempt, built: NextSnapshot) -> SparkPlan:
    """2 and 3. Decide what to publish, and check whether it can be published."""
    planned = compare(attempt, built)
    _prepare_destination(attempt, planned)
    return planned


def _prepare_destination(attempt: Attempt, plan: SparkPlan) -> None:
    """Check the destination of a table, and write metadata that it has lost."""
    node, publication, destination = attempt.node, attempt.publication, attempt.destination
    assert publication, "a dry run prepares nothing"
    if plan.journal is None:
        new_tables, storage = destination.new_tables, destination.storage()
        for warning in new_tables.add(storage, publication.table, plan.definition):
            node.warn(warning)
    elif plan.starts_folder:
        destination.check_table(publication.table, rebuilds=True)
    elif publication.restore_metadata(plan.journal):
        node.warn(
            f"{publication.table.metadata} was changed or lost. It has been written again as it "
            "was published."
        )
