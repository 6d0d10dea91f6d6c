"""0 and 6 to 8. Finishing a committed batch, in the run that committed it or in a later one."""

from __future__ import annotations

from dbt_common.exceptions import CompilationError, DbtRuntimeError

from dbt.adapters.openmirroring.landing_zone.errors import StagedFilesLostError
from dbt.adapters.openmirroring.landing_zone.publisher import Publication
from dbt.adapters.openmirroring.landing_zone.records import HeldRecord, Manifest
from dbt.adapters.openmirroring.node.progress import PUBLISHING
from dbt.adapters.openmirroring.node.snapshot.former_versions import bring_up_to_date
from dbt.adapters.openmirroring.node.snapshot.scratch_tables import (
    NEW_ROWS,
    NEXT,
    PART,
    PUBLISHED,
    ROLES_OF_ROWS,
    TYPED_ROWS,
    give_back,
    leftovers,
    remove_dropped,
    remove_unfinished,
    table_beside,
)
from dbt.adapters.openmirroring.node.snapshot.snapshot import snapshot_version, swap, take_in_place
from dbt.adapters.openmirroring.node.warehouse import Warehouse, logger
from dbt.adapters.openmirroring.spark.relation import BUILD_PROPERTY, OpenMirroringRelation


def recover(
    warehouse: Warehouse,
    publication: Publication,
    target: OpenMirroringRelation,
    is_rebuilt: bool = False,
) -> Manifest | None:
    """0. Finish the batch that an earlier run committed, if any, and let the relation catch up.

    The node may no longer exist, and Spark may be another one than that of the earlier run.

    Args:
        is_rebuilt: whether the table is rebuilt now, which replaces a batch that nobody can finish

    Raises:
        MirrorError: if the batch cannot be finished
    """
    give_back(warehouse, target)
    manifest = publication.pending()
    bring_up_to_date(warehouse, publication, target, manifest)
    snapshot, held = warehouse.found(target), publication.held
    if held and snapshot and snapshot.build not in (None, held.build):
        # another run has made the snapshot go ahead since dbt listed the relations
        warehouse.list_again(target)
    if manifest:
        try:
            finish(warehouse, publication, target, manifest)
        except StagedFilesLostError as error:
            if warehouse.found(target) is None:  # only the next snapshot has the rows
                catch_up(warehouse, target, manifest.batch.build, publication.held)
            if not is_rebuilt:
                raise
            logger.warning(f"This full load replaces a batch that cannot be finished: {error.msg}")
            publication.supersede(manifest)
            manifest = None
    last = publication.last
    came_back = catch_up(warehouse, target, publication.last_build, publication.held)
    if came_back and last:
        publication.keep(last, last.batch.build, None)  # it may be a copy
    remove_unfinished(warehouse, target)
    return manifest


def finish(
    warehouse: Warehouse,
    publication: Publication,
    target: OpenMirroringRelation,
    manifest: Manifest,
) -> None:
    """6 to 8. Publish the files of a batch, write the journal, and let the relation catch up.

    All of it can be repeated. Only a snapshot that takes its changes in place needs Spark.

    Raises:
        DbtRuntimeError: if the snapshot refuses the rows; the batch is withdrawn if its rows were
            certainly not stored
    """
    warehouse.adapter.progress.show_step(PUBLISHING)
    last = publication.last
    if last is None or last.batch.id != manifest.batch.id:
        state = None
        if manifest.snapshot_version:  # the snapshot may refuse the rows, so it takes them first
            state = _take_in_place(warehouse, publication, target, manifest)
        publication.publish(manifest)  # 6
        publication.record(manifest, state)  # 7
    catch_up(warehouse, target, manifest.batch.build, None, keeps_published=False)  # 8
    publication.complete(manifest)


def catch_up(
    warehouse: Warehouse,
    target: OpenMirroringRelation,
    last: str | None,
    held: HeldRecord | None,
    keeps_published: bool = True,
) -> bool:
    """8. Let the relation have the build that was published last, if it stands beside.

    What else a run has left beside the relation is dropped. Every statement can be repeated.

    Args:
        last: the id of the build that was published last
        keeps_published: whether the relation may be ahead, so that the rows that were published
            last stay beside it

    Returns:
        whether rows that were kept beside the relation are the relation again
    """
    following = warehouse.found(table_beside(target, NEXT, last)) if last else None
    kept = warehouse.found(table_beside(target, PUBLISHED, last)) if last else None
    is_missing = warehouse.found(target) is None
    if is_missing and following is None and held and held.build:
        # a run was killed while it replaced the relation by this build
        following = warehouse.found(table_beside(target, NEXT, held.build))
    came_back = is_missing and following is None and kept is not None
    following = following or (kept if is_missing else None)
    if following:
        if is_missing:
            remove_dropped(warehouse, target)
        swap(warehouse, target, following)
    for leftover in leftovers(warehouse, target, (NEXT, PUBLISHED, *ROLES_OF_ROWS)):
        if not (keeps_published and kept and leftover.place == kept.place):
            warehouse.drop(leftover)
    return came_back


def is_interrupted(warehouse: Warehouse, target: OpenMirroringRelation) -> bool:
    """Check whether a killed process has left a relation that has to catch up."""
    return bool(leftovers(warehouse, target, [NEXT])) or _is_moved_away(warehouse, target)


def _is_moved_away(warehouse: Warehouse, target: OpenMirroringRelation) -> bool:
    """Check whether a relation is missing, and its published rows stand beside its place."""
    return warehouse.found(target) is None and bool(leftovers(warehouse, target, [PUBLISHED]))


def refuse_interrupted(warehouse: Warehouse, target: OpenMirroringRelation) -> None:
    """Check, before a run that publishes nothing, that the relation does not have to catch up.

    Raises:
        CompilationError: if a killed process has moved it away without a replacement
    """
    if _is_moved_away(warehouse, target):
        raise CompilationError(
            f"An earlier run was killed while it held rows of {target}. Nothing was changed. Run "
            "the node once without `--empty`, `--sample` and `dry_run`, which repairs it."
        )


def _take_in_place(
    warehouse: Warehouse,
    publication: Publication,
    target: OpenMirroringRelation,
    manifest: Manifest,
) -> str | None:
    """Let the snapshot take the changed rows of a batch in place, and return its state.

    It is None if an earlier run has stored the rows, or if this is another Spark than that of the
    run.
    """
    batch = manifest.batch
    part = warehouse.found(table_beside(target, PART, batch.id))
    if part is None:
        return None
    is_repeated = publication.batch_id != batch.id
    # read before the mark below, which changes the version too
    was_stored = is_repeated and not _is_as_planned(warehouse, target, manifest)
    try:
        if is_repeated:
            # A Spark server may still be running the INSERT of a run that died. Delta refuses
            # a write that began before this change of the table.
            warehouse.mark(target, {"openmirroring.recovered_by": publication.batch_id})
        keys = batch.definition.key_columns
        # an earlier run may have died after it added the rows
        if keys or warehouse.count_rows(target) != batch.table_rows:
            typed, new = (table_beside(target, kind, batch.id) for kind in (TYPED_ROWS, NEW_ROWS))
            take_in_place(warehouse, target, part, warehouse.found(typed) or new, keys)
        warehouse.mark(target, {BUILD_PROPERTY: batch.build})
        warehouse.cache(target.carrying(batch.build))
        warehouse.replaced(target)
    except DbtRuntimeError:
        is_untouched = is_repeated or _is_as_planned(warehouse, target, manifest)
        if not was_stored and is_untouched:
            publication.withdraw(manifest)
        raise
    return f"version:{snapshot_version(warehouse, target)}"


def _is_as_planned(
    warehouse: Warehouse, target: OpenMirroringRelation, manifest: Manifest
) -> bool:
    """Check that the snapshot has not changed since the plan. Return False if unknown."""
    try:
        version = snapshot_version(warehouse, target)
    except DbtRuntimeError as error:
        logger.debug(f"{target}: {error}")
        return False
    return manifest.snapshot_version is not None and version == manifest.snapshot_version
