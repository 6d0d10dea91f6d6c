"""The end of a command, after its last node: replicate, wait and refresh."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from dbt_common.events.functions import fire_event
from dbt_common.events.types import Note

from dbt.adapters.openmirroring.destination.destination import Destination
from dbt.adapters.openmirroring.destination.replica import replicate
from dbt.adapters.openmirroring.destination.sql_endpoint import refresh_sql_endpoint
from dbt.adapters.openmirroring.service.monitoring import Service
from dbt.adapters.openmirroring.service.reports import ServiceError, logger
from dbt.adapters.openmirroring.text.table import LOG_PREFIX


def end_command(destination: Destination) -> None:
    """Replicate, wait and refresh as the profile says, if the command has changed anything."""
    destination.replicas.close()
    if destination.is_to_replicate:
        destination.is_to_replicate = False
        _replicate(destination)
        destination.keep_out_of_git()
    published, destination.published = destination.published, {}
    target, service = destination.target, destination.service
    if published and target.wait_for_mirror:
        _wait_for_mirror(service, published, target.wait_for_mirror)
    if published and target.refresh_sql_endpoint:
        refresh_sql_endpoint(destination.database, service, destination.storage(), published)


def _replicate(destination: Destination) -> None:
    replication = replicate(destination.landing_zone, LOG_PREFIX)
    for line in ("", *replication.lines):
        fire_event(Note(msg=line))
    if replication.failed:
        logger.warning(f"Not replicated: {', '.join(replication.failed)}")


def _wait_for_mirror(service: Service, published: Mapping[str, datetime], seconds: float) -> None:
    """Wait until the published files are applied, and warn of tables that are not.

    Args:
        published: the time of each publication, by `schema.table`
    """
    fire_event(Note(msg=f"Waiting up to {seconds:g} seconds until all is applied"))
    try:
        behind = service.not_applied(published, seconds)
    except ServiceError as error:
        logger.warning(error.msg)
        return
    if behind:
        logger.warning(f"Published, but not applied: {'; '.join(behind)}")
    else:
        fire_event(Note(msg=f"All is applied to {len(published)} mirrored tables"))
