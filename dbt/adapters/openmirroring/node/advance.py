"""0, 6 and 7. Finishing a committed batch, in the run that committed it or in a later one."""

from __future__ import annotations

from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.openmirroring.landing_zone.errors import (
    SnapshotMismatchError,
    StagedFilesLostError,
)
from dbt.adapters.openmirroring.landing_zone.publisher import Publication
from dbt.adapters.openmirroring.landing_zone.records import Manifest
from dbt.adapters.openmirroring.landing_zone.requirements import anew
from dbt.adapters.openmirroring.node.held import bring_back, forget, is_torn, settle
from dbt.adapters.openmirroring.node.progress import PUBLISHING
from dbt.adapters.openmirroring.node.scratch_tables import (
    NEW_ROWS,
    NEXT,
    PART,
    ROWS,
    TYPED_ROWS,
    leftovers,
    table_beside,
)
from dbt.adapters.openmirroring.node.snapshot_state import version_state
from dbt.adapters.openmirroring.node.swap import snapshot_version, swap, take_in_place
from dbt.adapters.openmirroring.node.table_folders import (
    give_back,
    remove_dropped,
    remove_unfinished,
)
from dbt.adapters.openmirroring.node.warehouse import Warehouse, logger
from dbt.adapters.openmirroring.spark.relation import BATCH_ID_PROPERTY, OpenMirroringRelation


def recover(
    warehouse: Warehouse,
    publication: Publication,
    target: OpenMirroringRelation,
    is_rebuilt: bool = False,
) -> Manifest | None:
    """0. Finish the batch that an earlier run committed, and drop the leftovers of other runs.

    The node may no longer exist, or it may have another `partition_by`.

    Args:
        is_rebuilt: whether the table is rebuilt now, which replaces a batch that nobody can finish

    Returns:
        the manifest of the finished batch; None if there was none

    Raises:
        MirrorError: if the batch cannot be finished
    """
    give_back(warehouse, target)
    manifest = publication.pending()
    snapshot = warehouse.found(target)
    if publication.is_held and snapshot and snapshot.batch_id:
        # another run has held rows since dbt listed the relations
        warehouse.list_again(target)
    if manifest:
        if _next_of(warehouse, target, manifest) and not snapshot:
            remove_dropped(warehouse, target)  # by the swap of this batch
        try:
            finish(warehouse, publication, target, manifest, may_have_partitions=True)
        except (SnapshotMismatchError, StagedFilesLostError) as error:
            if not is_rebuilt:
                raise
            logger.warning(f"This full load replaces a batch that cannot be finished: {error.msg}")
            publication.supersede(manifest)
            manifest = None
    last = publication.last
    if last and is_torn(warehouse, target):
        publication.keep(last, None)  # the rows that are brought back may be a copy
    bring_back(warehouse, target, last.batch.id if last else None)
    for leftover in leftovers(warehouse, target, (NEXT, *ROWS)):
        warehouse.drop(leftover)
    remove_unfinished(warehouse, target)
    return manifest


def finish(
    warehouse: Warehouse,
    publication: Publication,
    target: OpenMirroringRelation,
    manifest: Manifest,
    may_have_partitions: bool,
) -> None:
    """6 and 7. Publish the files of a batch, and make the next snapshot the snapshot.

    Every statement and every file operation of this function can be repeated.

    Raises:
        DbtRuntimeError: if the snapshot refuses the rows; the batch is withdrawn if its rows were
            certainly not stored
        SnapshotMismatchError: if Spark does not have the rows of the batch
    """
    warehouse.begin(PUBLISHING)
    batch_id, state = manifest.batch.id, None
    following = table_beside(target, NEXT, batch_id).carrying(batch_id)
    part = table_beside(target, PART, batch_id)
    if not _has_batch(warehouse, target, manifest):
        raise _lost(manifest, target)
    has_next = _next_of(warehouse, target, manifest) is not None
    in_place = not has_next and _part_of(warehouse, target, manifest) is not None
    if in_place:
        # before anything is published, because the table may refuse the rows
        _store_in_place(warehouse, publication, target, manifest)
        state = version_state(warehouse, target)
    publication.publish(manifest)  # 6
    if in_place:
        warehouse.drop(part)
    elif has_next:
        swap(warehouse, target, following, may_have_partitions)
        forget(warehouse, target, manifest.previous_batch_id)
    else:
        settle(warehouse, target, manifest.previous_batch_id, batch_id)
    publication.complete(manifest, state)  # 7


def _has_batch(warehouse: Warehouse, target: OpenMirroringRelation, manifest: Manifest) -> bool:
    """Check whether Spark has the rows of a batch: in the snapshot already, or beside it."""
    if _next_of(warehouse, target, manifest) or _part_of(warehouse, target, manifest):
        return True
    marks = warehouse.marks(warehouse.found(target))
    return marks.batch_id == manifest.batch.id or (
        manifest.held is not None and marks.held == manifest.held
    )


def _next_of(
    warehouse: Warehouse, target: OpenMirroringRelation, manifest: Manifest
) -> OpenMirroringRelation | None:
    return warehouse.found(table_beside(target, NEXT, manifest.batch.id))


def _part_of(
    warehouse: Warehouse, target: OpenMirroringRelation, manifest: Manifest
) -> OpenMirroringRelation | None:
    if manifest.held:  # such a snapshot has taken its part already
        return None
    return warehouse.found(table_beside(target, PART, manifest.batch.id))


def _store_in_place(
    warehouse: Warehouse,
    publication: Publication,
    target: OpenMirroringRelation,
    manifest: Manifest,
) -> None:
    """5. Store the rows of a batch in the snapshot. Withdraw the batch if Spark refuses them."""
    is_repeated = publication.batch_id != manifest.batch.id
    # read before the mark below, which changes the version too
    was_stored = is_repeated and not _is_as_planned(warehouse, manifest, target)
    try:
        if is_repeated:
            # A Spark server may still be running the INSERT of a run that died. Delta refuses a
            # write that began before this change of the table.
            warehouse.mark(target, {"openmirroring.recovered_by": publication.batch_id})
        _take_batch(warehouse, target, manifest)
    except DbtRuntimeError:
        is_untouched = is_repeated or _is_as_planned(warehouse, manifest, target)
        if not was_stored and is_untouched:
            publication.withdraw(manifest)
        raise


def _take_batch(warehouse: Warehouse, target: OpenMirroringRelation, manifest: Manifest) -> None:
    batch = manifest.batch
    keys = batch.definition.key_columns
    typed = warehouse.found(table_beside(target, TYPED_ROWS, batch.id))
    new_rows = typed or table_beside(target, NEW_ROWS, batch.id)
    # an earlier run may have died after it added the rows
    if keys or warehouse.count(f"select count(*) from {target}") != batch.table_rows:
        take_in_place(warehouse, target, table_beside(target, PART, batch.id), new_rows, keys)
    warehouse.mark(target, {BATCH_ID_PROPERTY: batch.id})
    warehouse.carries(target, batch.id)
    warehouse.replaced(target)


def _is_as_planned(
    warehouse: Warehouse, manifest: Manifest, target: OpenMirroringRelation
) -> bool:
    """Check that a snapshot to change in place has not changed. Return False if unknown."""
    try:
        version = snapshot_version(warehouse, target)
    except DbtRuntimeError as error:
        logger.debug(f"{target}: {error}")
        return False
    return manifest.snapshot_version is not None and version == manifest.snapshot_version


def _lost(manifest: Manifest, target: OpenMirroringRelation) -> SnapshotMismatchError:
    return SnapshotMismatchError(
        f"An earlier run has committed batch {manifest.batch.id} of {manifest.table}, but "
        f"this Spark has neither a next snapshot of {target} nor a snapshot with that batch. "
        "It was another Spark, or its warehouse was lost. Nothing was changed. Run the node "
        "there to complete the batch. If that warehouse is lost: "
        f"{anew(manifest.batch.owner, manifest.batch.table_rows)}"
    )
