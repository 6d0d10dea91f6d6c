"""Publishing a node, with the steps of docs/contributing/how-it-works.md in their order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from dbt.adapters.openmirroring.destination.destination import Destination
from dbt.adapters.openmirroring.landing_zone.publisher import Publication
from dbt.adapters.openmirroring.landing_zone.records import Manifest
from dbt.adapters.openmirroring.node.advance import Table, TakenRows, recover
from dbt.adapters.openmirroring.node.build import build, verify_contract
from dbt.adapters.openmirroring.node.decide import (
    Planner,
    beyond_limit,
    refuse_deletion,
    too_many_deleted,
)
from dbt.adapters.openmirroring.node.hooks import CodeBefore, run_post_hooks
from dbt.adapters.openmirroring.node.next_rows import NextRows, next_rows
from dbt.adapters.openmirroring.node.node import Node
from dbt.adapters.openmirroring.node.plan import SparkPlan
from dbt.adapters.openmirroring.node.progress import WAITING
from dbt.adapters.openmirroring.node.response import MirrorResponse
from dbt.adapters.openmirroring.node.snapshot.reuse import NextSnapshot, TouchedRows
from dbt.adapters.openmirroring.node.snapshot.scratch_tables import ScratchTables
from dbt.adapters.openmirroring.node.snapshot.snapshot import (
    PublishedRows,
    has_published_columns,
    snapshot_state,
    snapshot_version,
)
from dbt.adapters.openmirroring.node.stage import stage
from dbt.adapters.openmirroring.node.start import intent_of, look_at_rows, start
from dbt.adapters.openmirroring.protocol.actions import Done, Rebuild, Start
from dbt.adapters.openmirroring.protocol.facts import (
    NEXT,
    Explain,
    GoAhead,
    Held,
    Intent,
    Publish,
    PublishHeld,
    PublishPresent,
    Recover,
    Settle,
)
from dbt.adapters.openmirroring.protocol.start import (
    build_ahead,
    goes_ahead,
    hold,
    may_keep_rows,
)
from dbt.adapters.openmirroring.spark.relation import (
    BUILD_PROPERTY,
    ZONE_PROPERTY,
    OpenMirroringRelation,
)
from dbt.adapters.openmirroring.spark.table import TableDescription

# why rows are held while their run may still fail
_NOT_ENDED = "because its last run has not ended"


@dataclass
class Attempt:
    """An attempt to publish a node, after the leftovers of earlier runs were handled.

    Args:
        publication: holds the lock of the table
        published: the rows that were published last
        finished: the manifest of an earlier run's batch that has just been finished, if any
        rebuild: why the table is rebuilt; None if the changes decide
    """

    node: Node
    destination: Destination
    publication: Publication
    scratch: ScratchTables
    published: PublishedRows
    finished: Manifest | None
    rebuild: str | None = None

    @property
    def planner(self) -> Planner:
        return Planner(self.node, self.publication, self.published, self.scratch, self.rebuild)

    @property
    def marks(self) -> dict[str, str]:
        """The properties by which the build of this attempt is known."""
        zone_id = self.destination.zone_id
        return {BUILD_PROPERTY: self.publication.batch_id, ZONE_PROPERTY: zone_id}

    def held(self, why: str) -> Held:
        """Return the record that the build of this attempt is ahead."""
        return Held(self.publication.batch_id, self.rebuild, why=why)

    def start(self, intent: Intent) -> Start | Done:
        """Let the protocol decide whether and how this attempt goes on."""
        end, self.published = start(
            intent, self.node, self.destination, self.publication, self.scratch, self.published
        )
        self.rebuild = end.reason if isinstance(end, Rebuild) else None
        return end

    @property
    def table(self) -> Table:
        node, marks = self.node, self.published.marks
        return Table(
            node.warehouse, node.target, self.publication, marks=marks, properties=self.marks
        )

    def advance(self, intent: Intent, taking: TakenRows | None = None) -> None:
        """Do what the protocol says for an intent that only changes where rows are."""
        table = replace(self.table, taking=taking)
        table.advance(intent)
        self._found(table.published())

    def look_again(self) -> None:
        """Find the rows that were published last again, after code of the user."""
        self._found(self.table.look_again())

    def _found(self, published: PublishedRows) -> None:
        self.published, ahead = published, published.facts.ahead
        self.rebuild = ahead.rebuild if ahead else None


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
        finished = recover(warehouse, publication, target, node.is_full_refresh)
        if finished:
            node.print_line(
                f"Finished batch {finished.batch.id} of {target}, which an earlier run had left"
            )
        published = Table(warehouse, target, publication).published()
        facts = replace(published.facts, has_finished=finished is not None)
        published = replace(published, facts=facts)
        yield Attempt(node, destination, publication, scratch, published, finished)


def publish(node: Node, destination: Destination) -> MirrorResponse:
    """Build a node and publish its changes, or hold them if the configuration says so.

    Raises:
        DbtRuntimeError: if a step fails. Then nothing was published, or the next run finishes
            the batch
    """
    extends = node.is_incremental
    with begin_attempt(node, destination) as attempt:  # 0
        if not node.options.is_held:
            destination.check_table(attempt.publication.table, node.is_full_refresh)
        intent = intent_of(node)
        attempt.start(intent)
        _run_code_before(attempt, intent, extends)
        rows = next_rows(node, attempt.scratch, extends, _reusable(attempt, intent))
        if not goes_ahead(attempt.published.facts, intent):
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
        destination.check_table(attempt.publication.table, rebuilds=True)
        attempt.start(PublishPresent())
        verify_contract(node, node.target)
        built = attempt.planner.described(node.target)
        plan = _plan(attempt, built)
        refuse_deletion(node, plan)
        # rows that nobody has published before, whatever build they come from
        held = attempt.held("until mirror_rebuild has ended")
        ahead = GoAhead(held.build, held, build_ahead(attempt.published.facts))
        return commit(attempt, plan, built, held.build, before=lambda: attempt.advance(ahead))


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
        destination.check_table(attempt.publication.table, attempt.rebuild is not None)
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
    node, publication, published = attempt.node, attempt.publication, attempt.published
    if attempt.rebuild:  # nothing is compared, so nothing has to be kept
        node.run_code_before(lambda _: True)
        if node.has_code_before and goes_ahead(published.facts, intent):
            found = attempt.table.look_again()
            attempt.published = look_at_rows(node, publication, found)
        return
    if node.has_own_code:
        # this code cannot be undone if the table is refused later
        publication.verify(published.build, rebuilds=False, is_there=published.is_there)
    if node.has_code_before:
        code = CodeBefore(node, publication, attempt.published, extends)
        attempt.published, attempt.rebuild = code.run()


def _reusable(attempt: Attempt, intent: Publish) -> TableDescription | None:
    """Return the snapshot, if a build may keep rows and files of it; None to consider all rows."""
    node, published, last = attempt.node, attempt.published, attempt.publication.last
    if not may_keep_rows(published.facts, intent):
        return None
    if published.is_ahead:
        found = node.warehouse.found(node.target)
        return node.warehouse.describe(found) if found and found.is_table else None
    description = published.description
    if goes_ahead(published.facts, intent):
        return description  # the publication compares all rows, whatever the build keeps
    if description is None or last is None or not has_published_columns(description, last):
        return None
    return description


def _publish_rows(attempt: Attempt, rows: NextRows) -> MirrorResponse:
    """Build a node, and publish the difference from the rows that were published last."""
    node, publication = attempt.node, attempt.publication
    following, _ = build(node, rows, attempt.scratch, attempt.marks)  # 1
    verify_contract(node, following)  # 3
    built = attempt.planner.next_snapshot(following, rows)
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
        _make_snapshot(attempt, following, rows, attempt.held(finding))
        attempt.destination.builds[node.owner.node] = publication.batch_id
        raise too_many_deleted(node, finding)
    return commit(attempt, plan, built, publication.batch_id)


def _publish_snapshot(
    attempt: Attempt, is_limited: bool = True, wait_for_turn: Callable[[], None] = lambda: None
) -> MirrorResponse:
    """Publish the rows of a snapshot that is ahead of the mirror, as they are now."""
    node, build = attempt.node, attempt.published.marks.build
    assert build, "a snapshot that is ahead has a build"
    built = attempt.planner.next_snapshot(node.target, None)
    plan = _plan(attempt, built)  # 2 and 3
    finding = beyond_limit(node, plan) if is_limited else None
    if finding:
        attempt.advance(GoAhead(build, replace(attempt.held(finding), build=build)))
        raise too_many_deleted(node, finding)
    if plan.is_void:
        attempt.advance(Settle())
        return MirrorResponse.unchanged(plan)

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
    node, publication, warehouse = attempt.node, attempt.publication, attempt.node.warehouse
    files = stage(node, publication, plan, built)  # 4
    before()
    is_in_place = isinstance(built.reuse, TouchedRows)
    version = snapshot_version(warehouse, node.target) if is_in_place else None
    state = None if version else snapshot_state(warehouse, built.table, built.description)
    manifest = publication.commit(plan, files, build, version, state)  # 5
    Table(warehouse, node.target, publication, manifest).advance(Recover())  # 6 to 8
    return MirrorResponse.of(manifest.batch)


def _hold_rows(attempt: Attempt, rows: NextRows) -> MirrorResponse:
    """Build a node and make its rows the snapshot, without publishing them."""
    node, why = attempt.node, attempt.node.options.held_until
    unchanged = _go_ahead(attempt, rows)
    if unchanged:
        return unchanged
    if node.has_post_hooks:
        attempt.planner.check(attempt.planner.described(node.target))
        held = attempt.held(why)
        attempt.advance(GoAhead(held.build, held))
    attempt.destination.builds[node.owner.node] = attempt.publication.batch_id
    return MirrorResponse.held(why)


def _go_ahead(attempt: Attempt, rows: NextRows) -> MirrorResponse | None:
    """Build a node, make its rows the snapshot, and run its post-hooks.

    Returns:
        the response for dbt if the snapshot stays, because it has the same rows in the same files
    """
    node, published = attempt.node, attempt.published
    is_held, has_hooks = node.options.is_held, node.has_post_hooks
    # until hooks have run, or a publication has ended, the rows may not be right
    held = replace(
        attempt.held(node.options.held_until if is_held else _NOT_ENDED),
        is_finished=is_held and not has_hooks,
    )
    following, _ = build(node, rows, attempt.scratch, attempt.marks)  # 1
    # Rows that cannot be published are an error of the node that builds them. With post-hooks,
    # only the rows that the hooks leave count.
    if not has_hooks:
        verify_contract(node, following)
    if has_hooks or published.is_ahead:
        built = attempt.planner.described(following)
    else:
        built = attempt.planner.next_snapshot(following, rows)
        if built.reuse.equal_rows is not None:
            plan = attempt.planner.plan(built)
            if plan.is_void:  # nothing has to be held
                _prepare_destination(attempt, plan)
                return _keep_snapshot(attempt, plan)
    attempt.planner.check(built, with_rows=not has_hooks)
    _make_snapshot(attempt, following, rows, held)
    if has_hooks:
        run_post_hooks(node)
        attempt.look_again()
        attempt.advance(GoAhead(held.build, held))
        verify_contract(node, node.target)
    return None


def _keep_snapshot(attempt: Attempt, plan: SparkPlan) -> MirrorResponse:
    """Drop a build that has the rows of the snapshot, which was published last."""
    attempt.advance(Settle())
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
    ahead = hold(attempt.published.facts, held, bool(touched))
    attempt.advance(ahead, (built, touched) if touched else None)


def _plan(attempt: Attempt, built: NextSnapshot) -> SparkPlan:
    """2 and 3. Decide what to publish, and check whether it can be published."""
    plan = attempt.planner.plan(built)
    _prepare_destination(attempt, plan)
    return plan


def _prepare_destination(attempt: Attempt, plan: SparkPlan) -> None:
    """Check the destination of a table, and write metadata that it has lost."""
    node, publication, destination = attempt.node, attempt.publication, attempt.destination
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
