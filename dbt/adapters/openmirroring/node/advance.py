"""0, 6 and 7. Finishing a committed batch, in the run that committed it or in a later one."""

from __future__ import annotations

from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.openmirroring.landing_zone.errors import (
    SnapshotMismatchError,
    StagedFilesLostError,
)
from dbt.adapters.openmirroring.landing_zone.published_table import compute_anew
from dbt.adapters.openmirroring.landing_zone.publisher import Publication
from dbt.adapters.openmirroring.landing_zone.records import Manifest
from dbt.adapters.openmirroring.node.progress import PUBLISHING
from dbt.adapters.openmirroring.node.snapshot.held import (
    drop_published_rows,
    finish_hold,
    is_half_held,
    mark_published,
)
from dbt.adapters.openmirroring.node.snapshot.scratch_tables import (
    NEW_ROWS,
    NEXT,
    PART,
    ROLES_OF_ROWS,
    TYPED_ROWS,
    leftovers,
    table_beside,
)
from dbt.adapters.openmirroring.node.snapshot.state import version_state
from dbt.adapters.openmirroring.node.snapshot.swap import snapshot_version, swap, take_in_place
from dbt.adapters.openmirroring.node.snapshot.table_folders import (
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
    restores: bool = False,
) -> Manifest | None:
    """0. Finish the batch that an earlier run committed, and drop the leftovers of other runs.

    The node may no longer exist.

    Args:
        is_rebuilt: whether the table is rebuilt now, which replaces a batch that nobody can finish
        restores: whether a batch is also finished if Spark has lost its rows

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
        following = table_beside(target, NEXT, manifest.batch.id)
        if warehouse.found(following) and not snapshot:
            remove_dropped(warehouse, target)  # by the swap of this batch
        try:
            finish(warehouse, publication, target, manifest, restores)
        except (SnapshotMismatchError, StagedFilesLostError) as error:
            if not is_rebuilt:
                raise
            logger.warning(f"This full load replaces a batch that cannot be finished: {error.msg}")
            publication.supersede(manifest)
            manifest = None
    last = publication.last
    if last and is_half_held(warehouse, target):
        publication.keep(last, None)  # the rows that are brought back may be a copy
    finish_hold(warehouse, target, publication.last_batch_id)
    for leftover in leftovers(warehouse, target, (NEXT, *ROLES_OF_ROWS)):
        warehouse.drop(leftover)
    remove_unfinished(warehouse, target)
    return manifest


def finish(
    warehouse: Warehouse,
    publication: Publication,
    target: OpenMirroringRelation,
    manifest: Manifest,
    restores: bool = False,
) -> None:
    """6 and 7. Publish the files of a batch, and make the next snapshot the snapshot.

    Every statement and every file operation of this function can be repeated.

    Args:
        restores: whether to go on if Spark has lost the rows of the batch. Its files have them,
            so that they can be restored from the mirrored table

    Raises:
        DbtRuntimeError: if the snapshot refuses the rows; the batch is withdrawn if its rows were
            certainly not stored
        SnapshotMismatchError: if Spark does not have the rows of the batch
    """
    warehouse.show_step(PUBLISHING)
    has_rows = _has_rows(warehouse, target, manifest)
    if not (has_rows or restores):
        raise _lost(manifest, target)
    state = None
    if has_rows and manifest.ending == "in_place":
        # the snapshot may refuse the rows, so it takes them first
        state = _take_in_place(warehouse, publication, target, manifest)
    publication.publish(manifest)  # 6
    if has_rows:
        _end(warehouse, target, manifest)
    publication.complete(manifest, state)  # 7


def _has_rows(warehouse: Warehouse, target: OpenMirroringRelation, manifest: Manifest) -> bool:
    kind = {"swap": NEXT, "in_place": PART}.get(manifest.ending)
    if kind and warehouse.found(table_beside(target, kind, manifest.batch.id)):
        return True
    marks = warehouse.marks(warehouse.found(target))
    if marks.batch_id == manifest.batch.id:  # they are stored
        return True
    if manifest.ending == "held":
        return marks.held == manifest.held
    return manifest.ending == "none" and marks.batch_id == manifest.previous_batch_id


def _end(warehouse: Warehouse, target: OpenMirroringRelation, manifest: Manifest) -> None:
    """Make the snapshot that of the batch, once the files are published."""
    batch_id, previous = manifest.batch.id, manifest.previous_batch_id
    if manifest.ending == "swap":
        swap(warehouse, target, table_beside(target, NEXT, batch_id).carrying(batch_id))
        drop_published_rows(warehouse, target, previous)
    elif manifest.ending == "in_place":
        part = warehouse.found(table_beside(target, PART, batch_id))
        if part:
            warehouse.drop(part)
    else:  # the snapshot has the rows already
        mark_published(warehouse, target, previous, batch_id)


def _take_in_place(
    warehouse: Warehouse,
    publication: Publication,
    target: OpenMirroringRelation,
    manifest: Manifest,
) -> str | None:
    """Let the snapshot take the changed rows of a batch in place.

    Returns:
        the state of the snapshot's data; None if an earlier run has stored the rows

    Raises:
        DbtRuntimeError: if the snapshot refuses the rows; the batch is withdrawn if its rows were
            certainly not stored
    """
    part = warehouse.found(table_beside(target, PART, manifest.batch.id))
    if part is None:  # an earlier run has stored them, and published the files
        return None
    is_repeated = publication.batch_id != manifest.batch.id
    # read before the mark below, which changes the version too
    was_stored = is_repeated and not _is_as_planned(warehouse, target, manifest)
    try:
        if is_repeated:
            # A Spark server may still be running the INSERT of a run that died. Delta refuses
            # a write that began before this change of the table.
            warehouse.mark(target, {"openmirroring.recovered_by": publication.batch_id})
        _store(warehouse, target, manifest, part)
    except DbtRuntimeError:
        is_untouched = is_repeated or _is_as_planned(warehouse, target, manifest)
        if not was_stored and is_untouched:
            publication.withdraw(manifest)
        raise
    return version_state(warehouse, target)


def _store(
    warehouse: Warehouse,
    target: OpenMirroringRelation,
    manifest: Manifest,
    part: OpenMirroringRelation,
) -> None:
    batch = manifest.batch
    keys = batch.definition.key_columns
    typed, new = (table_beside(target, kind, batch.id) for kind in (TYPED_ROWS, NEW_ROWS))
    # an earlier run may have died after it added the rows
    if keys or warehouse.count_rows(target) != batch.table_rows:
        take_in_place(warehouse, target, part, warehouse.found(typed) or new, keys)
    warehouse.mark(target, {BATCH_ID_PROPERTY: batch.id})
    warehouse.cache(target.carrying(batch.id))
    warehouse.replaced(target)


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


def _lost(manifest: Manifest, target: OpenMirroringRelation) -> SnapshotMismatchError:
    return SnapshotMismatchError(
        f"An earlier run has committed batch {manifest.batch.id} of {manifest.table}, but "
        f"this Spark has neither a next snapshot of {target} nor a snapshot with that batch. "
        "It was another Spark, or its warehouse was lost. Nothing was changed. Run the node "
        "there to complete the batch. If that warehouse is lost: `restore_snapshots: true` in the "
        "target finishes the batch from its files, which the landing zone has. Or: "
        f"{compute_anew(manifest.batch.owner.node, manifest.batch.table_rows)}"
    )
