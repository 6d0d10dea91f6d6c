"""0, 6 and 7. Finishing a committed batch, in the run that committed it or in a later one."""

from __future__ import annotations

from dbt.adapters.openmirroring.landing_zone.errors import (
    SnapshotMismatchError,
    StagedFilesLostError,
)
from dbt.adapters.openmirroring.landing_zone.published_table import compute_anew
from dbt.adapters.openmirroring.landing_zone.publisher import Publication
from dbt.adapters.openmirroring.landing_zone.records import Manifest
from dbt.adapters.openmirroring.node.endings import ENDINGS, Elsewhere, Ending
from dbt.adapters.openmirroring.node.progress import PUBLISHING
from dbt.adapters.openmirroring.node.snapshot.held import finish_hold, is_half_held
from dbt.adapters.openmirroring.node.snapshot.scratch_tables import (
    NEXT,
    ROLES_OF_ROWS,
    leftovers,
    table_beside,
)
from dbt.adapters.openmirroring.node.snapshot.table_folders import (
    give_back,
    remove_dropped,
    remove_unfinished,
)
from dbt.adapters.openmirroring.node.warehouse import Warehouse, logger
from dbt.adapters.openmirroring.spark.relation import OpenMirroringRelation


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
    ending: Ending = ENDINGS[manifest.ending](warehouse, publication, target, manifest)
    if not ending.has_rows():
        if not restores:
            raise _lost(manifest, target)
        ending = Elsewhere(warehouse, publication, target, manifest)
    state = ending.before_files()
    publication.publish(manifest)  # 6
    ending.after_files()
    publication.complete(manifest, state)  # 7


def _lost(manifest: Manifest, target: OpenMirroringRelation) -> SnapshotMismatchError:
    return SnapshotMismatchError(
        f"An earlier run has committed batch {manifest.batch.id} of {manifest.table}, but "
        f"this Spark has neither a next snapshot of {target} nor a snapshot with that batch. "
        "It was another Spark, or its warehouse was lost. Nothing was changed. Run the node "
        "there to complete the batch. If that warehouse is lost: `restore_snapshots: true` in the "
        "target finishes the batch from its files, which the landing zone has. Or: "
        f"{compute_anew(manifest.batch.owner.node, manifest.batch.table_rows)}"
    )
