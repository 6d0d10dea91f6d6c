"""The mirrored database of a profile, as dbt's commands use it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from dbt_common.events.functions import fire_event
from dbt_common.events.types import Note
from dbt_common.exceptions import CompilationError

from dbt.adapters.openmirroring.credentials import OpenMirroringCredentials
from dbt.adapters.openmirroring.landing_zone.errors import MirrorError
from dbt.adapters.openmirroring.landing_zone.local import LocalStorage
from dbt.adapters.openmirroring.service.authentication import token_credential
from dbt.adapters.openmirroring.service.service import (
    Service,
    ServiceError,
    ServiceReport,
    logger,
    monitoring_report,
)

if TYPE_CHECKING:
    from dbt.adapters.openmirroring.landing_zone.onelake import OneLakeStorage
    from dbt.adapters.openmirroring.service.fabric import MirroredDatabase

# Of HTTP: this identity may not ask. A token that somebody has got for OneLake is none for Fabric.
_NOT_ALLOWED = (401, 403)

_PUBLISH_ANEW = "It begins anew, so publish full loads: dbt run --full-refresh"


def mirrored_database(credentials: OpenMirroringCredentials) -> MirroredDatabase:
    """The mirrored database that the landing zone belongs to.

    Raises:
        ServiceError: the landing zone is not in OneLake
    """
    # takes a moment, and a local landing zone needs none of it
    from dbt.adapters.openmirroring.service.fabric import MirroredDatabase

    place = credentials.onelake
    if not place:
        raise ServiceError(
            f"The landing zone {credentials.landing_zone!r} is a folder of this machine, so it "
            "belongs to no mirrored database in Fabric. `dbt run-operation mirror_replicate` "
            "applies it."
        )
    return MirroredDatabase(place.workspace, place.item, token_credential(credentials))


def what_fabric_says(
    database: MirroredDatabase, credentials: OpenMirroringCredentials
) -> ServiceReport | None:
    """What Fabric's REST API says, or `Files/Monitoring` if this identity may not ask it."""
    from dbt.adapters.openmirroring.service.fabric import FabricError

    try:
        return database.report()
    except FabricError as error:
        if error.status not in _NOT_ALLOWED:
            raise
        logger.debug(error.msg)
    return monitoring_report(_monitoring(credentials).read)


def _monitoring(credentials: OpenMirroringCredentials) -> OneLakeStorage:
    from dbt.adapters.openmirroring.landing_zone.onelake import OneLakeStorage
    from dbt.adapters.openmirroring.landing_zone.onelake_client import OneLakeClient

    assert credentials.onelake, "Fabric was asked"
    place, token = credentials.onelake.monitoring, token_credential(credentials)
    return OneLakeStorage(OneLakeClient.connect(place, token))


def what_the_replicator_says(landing_zone: Path) -> ServiceReport | None:
    """What is in `Files/Monitoring` beside a landing zone on this machine."""

    files = LocalStorage(landing_zone.parent)

    def read(name: str) -> bytes | None:
        try:
            return files.read(f"Monitoring/{name}")
        except MirrorError:
            return None

    return monitoring_report(read)


class DatabaseOperations:
    """What `dbt run-operation` does with the mirrored database; each tells what it did."""

    def __init__(self, database: MirroredDatabase) -> None:
        self._database = database

    def create(self, default_schema: str, retention_days: int | None) -> Iterator[str]:
        """Create it.

        Args:
            default_schema: of tables without a schema; with it every table gets that of its folder
            retention_days: how long Fabric keeps deleted files; None for its default

        Raises:
            CompilationError: an argument that cannot be
        """
        is_days = isinstance(retention_days, int) and 1 <= retention_days <= 30
        if retention_days is not None and not is_days:
            raise CompilationError(f"`retention_days` is {retention_days!r}. Allowed: 1 to 30.")
        if not default_schema:
            raise CompilationError("`default_schema` must be the name of a schema, e.g. dbo.")
        if not self._database.create(default_schema, retention_days):
            yield f"{self._named} is there already. Nothing was changed."
            return
        yield f"{self._named} was created."
        yield "Publish the first files, then start it: dbt run-operation mirror_start"

    def start(self) -> Iterator[str]:
        """Start it."""
        before = self._database.start()
        if before == "Running":
            yield f"{self._named} runs already. Nothing was changed."
            return
        yield f"{self._named} was started."
        if before == "Stopped":
            yield _PUBLISH_ANEW

    def stop(self, confirm: str | None) -> Iterator[str]:
        """Stop it.

        Args:
            confirm: its name

        Raises:
            CompilationError: the user has not confirmed it
        """
        name = self._database.name
        if confirm != name:
            raise CompilationError(
                f"Stopping {name!r} stops every table in it. When it is started again, it begins "
                "anew with those files that are still in the landing zone: what was applied "
                "before is lost until every table is published anew. No single table needs that: "
                "`dbt run-operation mirror_rebuild` repairs one. Nothing was changed. If you mean "
                f"it: --args '{{confirm: {name}}}'"
            )
        if not self._database.stop():
            yield f"{self._named} does not run. Nothing was changed."
            return
        yield f"{self._named} was stopped."
        yield f"When it is started: {_PUBLISH_ANEW}"

    @property
    def _named(self) -> str:
        return f"The mirrored database {self._database.name!r}"


def wait_for_mirror(service: Service, published: Mapping[str, datetime], seconds: float) -> None:
    """Wait until what was published is applied, and warn of what is not.

    Args:
        published: when, by `schema.table`
        seconds: to wait
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
