"""The landing zone and the service that a command publishes to."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from dbt_common.events.functions import fire_event
from dbt_common.events.types import Note
from dbt_common.exceptions import DbtConfigError

from dbt.adapters.openmirroring.landing_zone.batch import (
    Owner,
    TableDefinition,
)
from dbt.adapters.openmirroring.landing_zone.inventory import last_published
from dbt.adapters.openmirroring.landing_zone.layout import SCRATCH_PAD, TableFolder
from dbt.adapters.openmirroring.landing_zone.limits import NewTables
from dbt.adapters.openmirroring.landing_zone.local import LocalStorage
from dbt.adapters.openmirroring.landing_zone.published_table import PublishedTable
from dbt.adapters.openmirroring.landing_zone.publisher import Publication
from dbt.adapters.openmirroring.landing_zone.records import Journal, Manifest
from dbt.adapters.openmirroring.landing_zone.shown import shown_url
from dbt.adapters.openmirroring.landing_zone.source import declare_source
from dbt.adapters.openmirroring.landing_zone.storage import Storage
from dbt.adapters.openmirroring.operations import replica
from dbt.adapters.openmirroring.operations.lost_table import refuse_lost
from dbt.adapters.openmirroring.operations.sql_endpoint import (
    refresh_sql_endpoint,
    with_visible_times,
)
from dbt.adapters.openmirroring.operations.target import Target
from dbt.adapters.openmirroring.replicator.text_table import LOG_PREFIX
from dbt.adapters.openmirroring.service.authentication import token_credential
from dbt.adapters.openmirroring.service.monitoring import CHECK_AGE, Service
from dbt.adapters.openmirroring.service.monitoring_files import fabric_report, replicator_report
from dbt.adapters.openmirroring.service.reports import ServiceError, ServiceReport, logger

if TYPE_CHECKING:
    from dbt.adapters.openmirroring.landing_zone.onelake_client import OneLakeClient
    from dbt.adapters.openmirroring.landing_zone.staging import StagingFolder
    from dbt.adapters.openmirroring.operations.onelake_replica import OneLakeReplica
    from dbt.adapters.openmirroring.service.mirrored_database import MirroredDatabase

# called with the number of uploaded bytes and the number of all bytes
Upload = Callable[[int, int], None]


class Relation(Protocol):
    """A relation in Spark."""

    @property
    def schema(self) -> str | None: ...

    @property
    def identifier(self) -> str | None: ...


class Mirror:
    """The landing zone and the service, for one command of dbt.

    Args:
        target: where the landing zone is, and what happens after a command
        project: returns the folder of the dbt project, where relative paths start
        warehouse: returns the folder of the embedded Spark's tables, once Spark has started; None
            with any other Spark
        uploads: returns the callback for the uploads of the node that this thread runs
        kept: returns the folder for what the next command should know
    """

    def __init__(
        self,
        target: Target,
        project: Callable[[], Path],
        warehouse: Callable[[], Path | None],
        uploads: Callable[[], Upload | None] = lambda: None,
        kept: Callable[[], Path | None] = lambda: None,
    ) -> None:
        self._target = target
        self._project = project
        self._warehouse = warehouse
        self._uploads = uploads
        self._kept = kept
        self._service = Service(self._ask_service)
        self._new_tables = NewTables()
        self._lock = threading.Lock()
        self._onelake: OneLakeClient | None = None
        self._is_source_declared = False
        self._is_to_replicate = False
        self._published: dict[str, datetime] = {}
        self._builds: dict[str, str] = {}
        self.dry_run = target.dry_run
        self._replicas: list[OneLakeReplica] = []

    @property
    def place(self) -> str:
        """The landing zone as the profile names it, safe to show in a message."""
        return shown_url(self._target.landing_zone)

    def storage(self) -> Storage:
        place = self._target.onelake
        if not place:
            return LocalStorage(self.landing_zone)
        # this import is slow, and a local landing zone does not need it
        from dbt.adapters.openmirroring.landing_zone.ended_claims import EndedClaims
        from dbt.adapters.openmirroring.landing_zone.onelake import OneLakeStorage
        from dbt.adapters.openmirroring.landing_zone.onelake_client import OneLakeClient

        with self._lock:
            if not self._onelake:
                credential = token_credential(self._target.identity)
                self._onelake = OneLakeClient.connect(place, credential)
        kept = self._kept()
        ended = EndedClaims(kept / "ended_claims") if kept else None
        return OneLakeStorage(self._onelake, self._staging(), self._uploads(), _tell, ended)

    @property
    def landing_zone(self) -> Path:
        """The local folder of the landing zone."""
        return self._target.folder(self._project())

    @cached_property
    def database(self) -> MirroredDatabase:
        """The mirrored database in Fabric.

        Raises:
            ServiceError: if the landing zone is not in OneLake
        """
        # this import is slow, and a local landing zone does not need it
        from dbt.adapters.openmirroring.service.mirrored_database import MirroredDatabase

        place = self._target.onelake
        if not place:
            raise ServiceError(
                f"The landing zone {self._target.landing_zone!r} is a folder of this machine, so "
                "it belongs to no mirrored database in Fabric. `dbt run-operation "
                "mirror_replicate` applies it."
            )
        credential = token_credential(self._target.identity)
        return MirroredDatabase(place.workspace, place.item, credential)

    def check(self) -> None:
        """Check that a publication would succeed, with a test file on the scratch pad.

        Raises:
            MirrorError: if it would not succeed
        """
        if self._target.onelake:
            self._service.check_all()
        storage = self.storage()
        folder = f"{SCRATCH_PAD}/_debug"
        with storage.lock(folder):
            # a check that was killed has left its file, and the folder itself is the lock
            for entry in storage.list(folder):
                storage.delete(f"{folder}/{entry.name}")
            storage.create(f"{folder}/file", b"")
            storage.rename(f"{folder}/file", f"{folder}/renamed")
            storage.delete(f"{folder}/renamed")

    def _open(self, table: TableFolder, owner: Owner) -> Publication:
        self.require_run()
        service = self._service if self._target.onelake else None
        if service:
            service.check()
        storage = self.storage()
        self._declare_source(storage)
        publication = Publication(storage, table, owner, service)
        self._is_to_replicate = self._target.replicate
        return publication

    @contextmanager
    def publication(self, table: TableFolder, owner: Owner) -> Iterator[Publication]:
        """Lock a table while it is published.

        Raises:
            MirrorError: if another run is publishing the table, or the service would not apply it
        """
        publication = self._open(table, owner)
        try:
            yield publication
        finally:
            if publication.published_at:
                self._published[publication.table.mirrored_table] = publication.published_at
            publication.close()

    def add_table(self, table: TableFolder, definition: TableDefinition) -> list[str]:
        """Count a table that is published for the first time.

        Returns:
            warnings for the user

        Raises:
            MirrorError: if the mirrored database would have too many tables
        """
        return self._new_tables.add(self.storage(), table, definition)

    def check_table(self, table: TableFolder, rebuilds: bool) -> None:
        """Check whether the service will apply files that are published to a table.

        The service is Fabric, or the replicator if it has reported on a local landing zone.

        Args:
            rebuilds: whether the table will be rebuilt

        Raises:
            ServiceError: if the service will not apply them, or has lost the rows that they change
        """
        if not self._target.onelake and self._service.report(CHECK_AGE) is None:
            return  # no replicator has applied anything yet
        report = self._service.check_table(table.mirrored_table, rebuilds)
        if self._target.onelake and report and not rebuilds:
            refuse_lost(self.storage(), table, report)

    def waits_for(self, unfinished: Manifest) -> bool:
        """Check whether finishing a batch may wait for Fabric, up to half an hour."""
        return self._target.onelake is not None and unfinished.batch.starts_folder

    def published_table(self, table: TableFolder, owner: Owner) -> PublishedTable:
        """Return the published state of a table, for reading only."""
        return PublishedTable(self.storage(), table, owner)

    def require_run(self) -> None:
        """Check that this command may change the landing zone.

        Raises:
            DbtConfigError: if the target is a dry run
        """
        if self.dry_run:
            raise DbtConfigError(
                "This target has `dry_run: true`, which changes nothing in the landing zone. Use "
                "another target."
            )

    def built(self, node: str, build_id: str) -> None:
        """Record a build that is held.

        Args:
            node: unique id of the node
        """
        self._builds[node] = build_id

    def build_of(self, node: str) -> str | None:
        """Return the id of a node's held build that this command tested; None without one."""
        return self._builds.get(node)

    def report(self) -> tuple[ServiceReport, list[str]]:
        """Return the report of the service, and lines to print about it."""
        try:
            report = self._service.report() or ServiceReport()
        except ServiceError as error:
            return ServiceReport(), [error.msg, ""]
        if self._target.onelake and report.status:
            report = with_visible_times(report, self.storage())
            return report, [f"The mirrored database is {report.description}.", ""]
        return report, []

    def last_published(self, model: Relation) -> Journal | None:
        """Return the journal of a model's last publication; None if it was never published."""
        return last_published(self.storage(), str(model.schema), str(model.identifier))[1]

    def replica_of(self, schema: str, identifier: str, seconds: float) -> replica.Replica:
        """Return a mirrored table, after everything that was published of it is applied.

        Args:
            schema, identifier: schema and identifier of the model's relation
            seconds: seconds to wait until it is applied

        Raises:
            DbtRuntimeError: if it is not applied within that time, or cannot be read
        """
        table, journal = last_published(self.storage(), schema, identifier)
        place = self._target.onelake
        if not place:
            return replica.applied(
                self.landing_zone,
                table.schema,
                table.identifier,
                replicate=self._target.replicate,
                seconds=seconds,
            )
        # this import is slow, and a local landing zone does not need it
        from dbt.adapters.openmirroring.operations.onelake_replica import OneLakeReplica

        credential = token_credential(self._target.identity)
        found = OneLakeReplica(place, credential, table, self._staging())
        self._replicas.append(found)
        return found.applied(journal, self._service, seconds)

    def replicate_at_the_end(self, is_wanted: bool) -> None:
        """Set whether the command changed anything that the replicator must apply at its end."""
        self._is_to_replicate = self._target.replicate and is_wanted

    def end(self) -> None:
        """End a command: replicate, wait and refresh as the profile says."""
        while self._replicas:
            self._replicas.pop().clear()
        if self._is_to_replicate:
            self._is_to_replicate = False
            replication = replica.replicate(self.landing_zone, LOG_PREFIX)
            for line in ("", *replication.lines):
                fire_event(Note(msg=line))
            if replication.failed:
                logger.warning(f"Not replicated: {', '.join(replication.failed)}")
        published, self._published = self._published, {}
        if published and self._target.wait_for_mirror:
            wait_for_mirror(self._service, published, self._target.wait_for_mirror)
        if published and self._target.refresh_sql_endpoint:
            refresh_sql_endpoint(self.database, self._service, self.storage(), published)

    def _staging(self) -> StagingFolder | None:
        # this import is slow, and a local landing zone does not need it
        from dbt.adapters.openmirroring.landing_zone.staging import StagingFolder

        url = self._staging_location()
        return StagingFolder(url) if url else None

    def _staging_location(self) -> str | None:
        """Return the URL where Spark writes files to upload; None if it writes to OneLake."""
        given = self._target.staging_location
        if given and "://" in given:
            return given
        if given:
            return f"file://{(self._project() / Path(given).expanduser()).resolve()}"
        # the embedded Spark has no driver for OneLake, so dbt uploads its files
        warehouse = self._warehouse()
        return f"file://{warehouse.with_name('staging')}" if warehouse else None

    def _ask_service(self) -> ServiceReport | None:
        if self._target.onelake:
            return fabric_report(self.database, self._target.onelake, self._target.identity)
        return replicator_report(self.landing_zone)

    def _declare_source(self, storage: Storage) -> None:
        """Declare the source of the data to Fabric, once for each command."""
        source = self._target.source
        with self._lock:
            if source and not self._is_source_declared:
                declare_source(storage, source)
                self._is_source_declared = True


def wait_for_mirror(service: Service, published: Mapping[str, datetime], seconds: float) -> None:
    """Wait until the published files are applied, and warn of tables that are not.

    Args:
        published: the time of each publication, by `schema.table`
        seconds: seconds to wait
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


def _tell(text: str) -> None:
    fire_event(Note(msg=text))
