"""The sources of the service's reports: Fabric's REST API, and the files in `Files/Monitoring`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbt.adapters.openmirroring.landing_zone.errors import (
    LandingZoneUnavailableError,
    MirrorError,
)
from dbt.adapters.openmirroring.landing_zone.layout import mirrored_table
from dbt.adapters.openmirroring.landing_zone.local.storage import LocalStorage
from dbt.adapters.openmirroring.landing_zone.onelake.url import OneLakeUrl
from dbt.adapters.openmirroring.service.authentication import Identity, token_credential
from dbt.adapters.openmirroring.service.reports import (
    ServiceReport,
    ServiceUnavailableError,
    TableReport,
    logger,
    utc_time,
)
from dbt.adapters.openmirroring.text.shown import shown

if TYPE_CHECKING:
    from dbt.adapters.openmirroring.service.mirrored_database import MirroredDatabase

# HTTP statuses if the identity may not ask, e.g. because its token is valid for OneLake only.
_NOT_ALLOWED = (401, 403)


def fabric_report(
    database: MirroredDatabase, place: OneLakeUrl, identity: Identity
) -> ServiceReport | None:
    """Ask Fabric's REST API, or read `Files/Monitoring` if the identity may not ask it.

    Returns:
        None if the identity may not read these files either, or they are missing or not valid

    Raises:
        FabricError: if the REST API fails for another reason
        ServiceUnavailableError: if the files cannot be read for another reason
    """
    # these imports are slow, and a local landing zone does not need them
    from azure.core.exceptions import ClientAuthenticationError

    from dbt.adapters.openmirroring.landing_zone.onelake.storage import (
        OneLakeClient,
        OneLakeStorage,
    )
    from dbt.adapters.openmirroring.service.fabric_api import FabricError

    try:
        return database.report()
    except FabricError as refused:
        if refused.status not in _NOT_ALLOWED:
            raise
        without_api = refused.msg
        logger.debug(without_api)
    files = OneLakeStorage(OneLakeClient.connect(place.monitoring, token_credential(identity)))
    try:
        return monitoring_report(files.read)
    except LandingZoneUnavailableError as error:
        cause: Any = error.__cause__
        if isinstance(cause, ClientAuthenticationError) and cause.response is None:
            raise ServiceUnavailableError(without_api) from error  # the login has failed
        # a role may grant the landing zone without the folder beside it
        if getattr(cause, "status_code", None) not in _NOT_ALLOWED:
            raise ServiceUnavailableError(error.msg) from error
        logger.debug(error.msg)
        return None


def replicator_report(landing_zone: Path) -> ServiceReport | None:
    """Read `Monitoring` beside a local landing zone; None if it cannot be read."""
    files = LocalStorage(landing_zone.parent)

    def read(name: str) -> bytes | None:
        try:
            return files.read(f"Monitoring/{name}")
        except MirrorError:
            return None

    return monitoring_report(read)


def monitoring_report(read: Callable[[str], bytes | None]) -> ServiceReport | None:
    """Read the service's files in `Files/Monitoring`; None if they are missing or not valid.

    Args:
        read: returns the content of a file in that folder; None if there is no such file
    """
    try:
        replicator = json.loads(read("replicator.json") or b"{}")
        tables = json.loads(read("tables.json") or b"")["tables"]
        return ServiceReport(
            status=shown(replicator.get("status") or ""),
            error=shown(replicator.get("errorMessage") or ""),
            tables={
                mirrored_table(table["sourceSchemaName"], table["sourceTableName"]): TableReport(
                    shown(table["status"]),
                    shown(table.get("errorMessage") or ""),
                    utc_time((table.get("metrics") or {}).get("lastSyncTimeUtc")),
                )
                for table in tables
            },
        )
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None
