"""What a profile publishes to: its landing zone, and the service that applies it."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from dbt_common.events.functions import fire_event
from dbt_common.events.types import Note

from dbt.adapters.openmirroring.credentials import OpenMirroringCredentials
from dbt.adapters.openmirroring.landing_zone.batch import Owner, TableDefinition
from dbt.adapters.openmirroring.landing_zone.layout import SCRATCH_PAD, TableFolder
from dbt.adapters.openmirroring.landing_zone.limits import NewTables
from dbt.adapters.openmirroring.landing_zone.local import LocalStorage
from dbt.adapters.openmirroring.landing_zone.publisher import Publication
from dbt.adapters.openmirroring.landing_zone.source import Source, declare_source
from dbt.adapters.openmirroring.landing_zone.storage import Storage
from dbt.adapters.openmirroring.operations import replica
from dbt.adapters.openmirroring.service.authentication import token_credential
from dbt.adapters.openmirroring.service.mirrored_database import (
    mirrored_database,
    wait_for_mirror,
    what_fabric_says,
    what_the_replicator_says,
)
from dbt.adapters.openmirroring.service.service import (
    Service,
    ServiceError,
    ServiceReport,
    logger,
)

if TYPE_CHECKING:
    from dbt.adapters.openmirroring.landing_zone.onelake_client import OneLakeClient
    from dbt.adapters.openmirroring.service.fabric import MirroredDatabase

# bytes whose progress is shown
_LONG_UPLOAD = 64 * 1024 * 1024


class Mirror:
    """Landing zone and service, as long as a command of dbt takes.

    Args:
        credentials: the profile
        project: the dbt project's folder, where relative paths start
        warehouse: of the embedded Spark, once it has started; None with any other Spark
    """

    def __init__(
        self,
        credentials: OpenMirroringCredentials,
        project: Callable[[], Path],
        warehouse: Callable[[], Path | None],
    ) -> None:
        self._credentials = credentials
        self._project = project
        self._warehouse = warehouse
        self._service = Service(self._ask_service)
        self._new_tables = NewTables()
        self._lock = threading.Lock()
        self._onelake: OneLakeClient | None = None
        self._is_source_declared = False
        self._is_to_replicate = False
        self._published: dict[str, datetime] = {}

    def storage(self) -> Storage:
        place = self._credentials.onelake
        if not place:
            return LocalStorage(self.landing_zone)
        # takes a moment, and a local one needs none of it
        from dbt.adapters.openmirroring.landing_zone.onelake import OneLakeStorage
        from dbt.adapters.openmirroring.landing_zone.onelake_client import OneLakeClient
        from dbt.adapters.openmirroring.landing_zone.staging import StagingFolder

        with self._lock:
            if not self._onelake:
                self._onelake = OneLakeClient.connect(place, token_credential(self._credentials))
        url = self._staging_location()
        staging = StagingFolder(url) if url else None
        return OneLakeStorage(self._onelake, staging, _show_upload, _tell)

    @property
    def landing_zone(self) -> Path:
        """The landing zone on this machine."""
        return self._credentials.landing_zone_path(self._project())

    @cached_property
    def database(self) -> MirroredDatabase:
        """The mirrored database in Fabric."""
        return mirrored_database(self._credentials)

    def check(self) -> None:
        """Make sure that a publication would succeed.

        Raises:
            MirrorError: it would not
        """
        if self._credentials.onelake:
            self._service.check_all()
        storage = self.storage()
        folder = f"{SCRATCH_PAD}/_debug"
        with storage.lock(folder):
            storage.create(f"{folder}/file", b"")
            storage.rename(f"{folder}/file", f"{folder}/renamed")
            storage.delete(f"{folder}/renamed")

    def _open(self, table: TableFolder, owner: Owner) -> Publication:
        service = self._service if self._credentials.onelake else None
        if service:
            service.check()
        storage = self.storage()
        self._declare_source(storage)
        publication = Publication(storage, table, owner, service)
        self._is_to_replicate = self._credentials.replicate
        return publication

    @contextmanager
    def publication(self, table: TableFolder, owner: Owner) -> Iterator[Publication]:
        """Hold a table while it is published.

        Raises:
            MirrorError: another run is publishing it, or the service would not apply it
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
            MirrorError: it would be one too many
        """
        return self._new_tables.add(self.storage(), table, definition)

    def check_table(self, table: TableFolder, rebuilds: bool) -> None:
        """Make sure that Fabric will apply what is published to a table.

        Args:
            rebuilds: the table is to be rebuilt

        Raises:
            ServiceError: it will not
        """
        if self._credentials.onelake:
            self._service.check_table(table.mirrored_table, rebuilds)

    def report(self) -> tuple[ServiceReport, list[str]]:
        """What the service says, and lines to print of it."""
        try:
            report = self._service.report() or ServiceReport()
        except ServiceError as error:
            return ServiceReport(), [error.msg, ""]
        if self._credentials.onelake and report.status:
            return report, [f"The mirrored database is {report.description}.", ""]
        return report, []

    def replicate_at_the_end(self, is_wanted: bool) -> None:
        """Whether something was changed that the replicator has to apply."""
        self._is_to_replicate = self._credentials.replicate and is_wanted

    def end(self) -> None:
        """The end of a command: what it has published is applied, if the profile says so."""
        if self._is_to_replicate:
            self._is_to_replicate = False
            replication = replica.replicate(self.landing_zone)
            for line in ("", *replication.lines):
                fire_event(Note(msg=line))
            if replication.failed:
                logger.warning(f"Not replicated: {', '.join(replication.failed)}")
        published, self._published = self._published, {}
        if published and self._credentials.wait_for_mirror:
            wait_for_mirror(self._service, published, self._credentials.wait_for_mirror)

    def _staging_location(self) -> str | None:
        """The URL where Spark writes what is to be uploaded; None if it writes to OneLake."""
        given = self._credentials.staging_location
        if given and "://" in given:
            return given
        if given:
            return f"file://{(self._project() / Path(given).expanduser()).resolve()}"
        # it has no driver for OneLake
        warehouse = self._warehouse()
        return f"file://{warehouse.with_name('staging')}" if warehouse else None

    def _ask_service(self) -> ServiceReport | None:
        if self._credentials.onelake:
            return what_fabric_says(self.database, self._credentials)
        return what_the_replicator_says(self.landing_zone)

    def _declare_source(self, storage: Storage) -> None:
        """Once a command."""
        source = self._credentials.source
        with self._lock:
            if source and not self._is_source_declared:
                declare_source(storage, Source.parse(source))
                self._is_source_declared = True


def _tell(text: str) -> None:
    fire_event(Note(msg=text))


def _show_upload(done: int, total: int) -> None:
    """Tell somebody who looks at a terminal how far an upload is that takes a while."""
    if total >= _LONG_UPLOAD and sys.stderr.isatty():
        end = "\n" if done == total else ""
        sys.stderr.write(f"\r{done >> 20:,} of {total >> 20:,} MB uploaded to OneLake{end}")
        sys.stderr.flush()
