"""What earlier versions of this package have left beside a relation, brought to today's form."""

from __future__ import annotations

from contextlib import suppress

from dbt.adapters.openmirroring.landing_zone.batch import check_batch_id
from dbt.adapters.openmirroring.landing_zone.publisher import Publication
from dbt.adapters.openmirroring.landing_zone.records import Manifest
from dbt.adapters.openmirroring.node.snapshot.scratch_tables import (
    table_beside,
)
from dbt.adapters.openmirroring.node.snapshot.snapshot import move
from dbt.adapters.openmirroring.node.warehouse import Warehouse
from dbt.adapters.openmirroring.protocol.facts import PUBLISHED
from dbt.adapters.openmirroring.spark.relation import (
    BUILD_PROPERTY,
    VERSION_PROPERTY,
    OpenMirroringRelation,
)

# the properties of a held snapshot: the id of its build, why it will be published as a rebuild,
# and whether its run has not ended
_HELD = "openmirroring.held"
_REBUILD = "openmirroring.held_rebuild"
_UNFINISHED = "openmirroring.unfinished"


def bring_up_to_date(
    warehouse: Warehouse,
    publication: Publication,
    target: OpenMirroringRelation,
    manifest: Manifest | None,
) -> None:
    """Let a held snapshot of version 1 of the records be known by its build.

    Its table had a property of its own for that, and the rows that were published last were in
    `<identifier>__published`.

    Args:
        manifest: the batch that an earlier run has committed; None if there is none
    """
    held, last = publication.held, publication.last_build
    publishes_held = manifest is not None and manifest.batch.build != manifest.batch.id
    if not (held and held.build is None) and not publishes_held:
        return
    place = target.incorporate(path={"identifier": f"{target.identifier}__published"})
    kept = warehouse.found(place)
    if kept and last and warehouse.marks(kept).build == last:
        move(warehouse, kept, table_beside(target, PUBLISHED, last))
    snapshot = warehouse.found(target)
    if snapshot is None or snapshot.is_view:
        return
    properties = warehouse.properties(snapshot)
    build, version = properties.get(_HELD, ""), properties.get(VERSION_PROPERTY)
    if manifest and properties.get(BUILD_PROPERTY) == manifest.batch.id:
        build = manifest.batch.build
    with suppress(ValueError):  # anybody may set a property
        check_batch_id(build)
        is_past = bool(version and last)
        noted = {VERSION_PROPERTY: f"{last} {version}"} if is_past else {}
        warehouse.mark(target, {BUILD_PROPERTY: build, **noted})
        warehouse.unmark(target, [_HELD, _REBUILD, _UNFINISHED])
        warehouse.cache(target.carrying(build))
        if held:
            rebuild = properties.get(_REBUILD) or None
            publication.hold(build, held.why, rebuild, _UNFINISHED not in properties)
