"""The landing zone and the service that a command publishes to.

The packages for OneLake are slow to import, and a local landing zone does not need them.
"""

from __future__ import annotations

import hashlib
import threading
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbt_common.exceptions import DbtConfigError, DbtRuntimeError

from dbt.adapters.openmirroring.dbt_core.flags import keep_out_of_git
from dbt.adapters.openmirroring.destination import replica
from dbt.adapters.openmirroring.destination.sql_endpoint import (
    refresh_sql_endpoint,
    with_visible_times,
)
from dbt.adapters.openmirroring.landing_zone.batch import Owner
from dbt.adapters.openmirroring.landing_zone.errors import ConcurrentPublicationError
from dbt.adapters.openmirroring.landing_zone.inventory import NewTables, last_published
from dbt.adapters.openmirroring.landing_zone.layout import SCRATCH_PAD, TableFolder
from dbt.adapters.openmirroring.landing_zone.local.storage import (
    LocalStorage,
    file_url,
    folder_of,
)
from dbt.adapters.openmirroring.landing_zone.onelake.url import OneLakeUrl, is_guid
from dbt.adapters.openmirroring.landing_zone.publisher import Publication
from dbt.adapters.openmirroring.landing_zone.records import Journal, Manifest
from dbt.adapters.openmirroring.landing_zone.source import declare_source, source_events
from dbt.adapters.openmirroring.landing_zone.storage import Storage
from dbt.adapters.openmirroring.service.authentication import (
    Identity,
    require_token,
    token_credential,
)
from dbt.adapters.openmirroring.service.monitoring import (
    CHECK_AGE,
    Service,
    fabric_report,
    refuse_lost,
    replicator_report,
)
from dbt.adapters.openmirroring.service.reports import ServiceError, ServiceReport, logger
from dbt.adapters.openmirroring.text.codes import note, with_code
from dbt.adapters.openmirroring.text.errors import ProfileError
from dbt.adapters.openmirroring.text.shown import shown_url
from dbt.adapters.openmirroring.text.table import LOG_PREFIX

if TYPE_CHECKING:
    from azure.core.credentials import TokenCredential

    from dbt.adapters.openmirroring.landing_zone.onelake.storage import (
        OneLakeClient,
        StagingFolder,
    )
    from dbt.adapters.openmirroring.service.mirrored_database import MirroredDatabase

# called with the rows or bytes that were moved so far, and with their bytes or all bytes
Progress = Callable[[int, int], None]

# the end of a local landing zone that has the mirrored tables beside it, as in OneLake
_BESIDE_TABLES = ("Files", "LandingZone")

# ids of landing zones in OneLake begin with one of these
_NAMES, _GUIDS = "names", "guids"


@dataclass
class Target(Identity):
    """The settings of a profile for publishing: where to, as whom, and what a command does then.

    Args:
        landing_zone: a local folder, or a URL in OneLake; a relative path starts at the dbt
            project
        staging_location: where Spark writes files before they are uploaded to OneLake: a local
            folder, whose relative path starts at the dbt project, or a URL that both Spark and
            fsspec can reach. Without it Spark writes to OneLake directly. The embedded Spark
            cannot do that
        source: the source in `_partnerEvents.json`
        replicate: at the end of each run, apply the published files to mirrored tables beside the
            landing zone, as the service would
        wait_for_mirror: seconds that a command may wait at its end until the service has applied
            the published files; 0 does not wait
        dry_run: publish nothing, but report what would be published
        restore_baseline: bring back what Spark has lost from the mirrored tables, so that a run
            goes on anywhere
        refresh_sql_endpoint: after a command has published and has waited for the mirror, refresh
            the SQL analytics endpoint of the mirrored database
    """

    landing_zone: str | None = None
    staging_location: str | None = None
    source: dict[str, Any] | None = None
    replicate: bool = False
    wait_for_mirror: float = 0
    dry_run: bool = False
    restore_baseline: bool = False
    refresh_sql_endpoint: bool = False

    @property
    def onelake(self) -> OneLakeUrl | None:
        """The landing zone, if it is in OneLake."""
        url = str(self.landing_zone)
        return OneLakeUrl.parse(url) if "://" in url else None


def is_another_zone(id_: str, other: str) -> bool:
    """Check whether two ids are certainly those of two landing zones.

    Names may be those of GUIDs.
    """
    kinds = {id_.partition(":")[0], other.partition(":")[0]}
    return id_ != other and kinds != {_NAMES, _GUIDS}


class Destination:
    """The landing zone and the service, for one command of dbt.

    Args:
        target: the settings of the profile
        project: returns the folder of the dbt project, where relative paths start
        warehouse: returns the folder of the embedded Spark's tables, once Spark has started; None
            with any other Spark
        uploads: returns what shows the uploads of the node that this thread runs: it is called
            with the uploaded bytes, and all bytes
        downloads: the same for its downloads, with the rows and bytes downloaded so far
        own_session: lets the statements of this thread run in a session without code of the user
    """

    def __init__(
        self,
        target: Target,
        project: Callable[[], Path],
        warehouse: Callable[[], Path | None],
        uploads: Callable[[], Progress | None] = lambda: None,
        downloads: Callable[[], Progress | None] = lambda: None,
        own_session: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        self.target = target
        self.onelake = target.onelake
        self.dry_run = target.dry_run
        self.restores = target.restore_baseline
        """Whether the rows that Spark has lost come from the mirrored tables."""
        self.service = Service(self._ask_service)
        self.new_tables = NewTables()
        self.published: dict[str, datetime] = {}
        """The time of each publication of this command, by `schema.table`."""
        self.has_changed = False
        """Whether this command has changed what the replicator applies."""
        self.builds: dict[str, str] = {}
        """The ids of the held builds that this command makes or tests, by the id of the node."""
        self._replicas = ExitStack()
        """At the end of the command, this removes the rows that were copied for Spark."""
        self._project = project
        self._warehouse = warehouse
        self._uploads = uploads
        self._downloads = downloads
        self._own_session = own_session
        self._lock = threading.Lock()
        self._client: OneLakeClient | None = None
        self._is_source_declared = False

    @property
    def place(self) -> str:
        """The landing zone as the profile names it, safe to show in a message."""
        return shown_url(str(self.target.landing_zone))

    @cached_property
    def zone_id(self) -> str:
        """A short name of the landing zone, which `is_another_zone` compares.

        It does not depend on how the profile spells the address, nor on the host, of which
        OneLake has several. Case is ignored, as by some file systems: if two places are taken for
        one, a run is refused and nothing is rebuilt.
        """
        if self.onelake:
            kind = _GUIDS if is_guid(self.onelake.item) else _NAMES
            address = f"{self.onelake.workspace}/{self.onelake.item}"
        else:
            kind, address = "folder", str(self.landing_zone)
        name = unicodedata.normalize("NFC", address).casefold()
        digest = hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()[:16]
        return f"{kind}:{digest}"

    def storage(self) -> Storage:
        if not self.onelake:
            return self._local
        # this import is slow, and a local landing zone does not need it
        from dbt.adapters.openmirroring.landing_zone.onelake.storage import (
            OneLakeClient,
            OneLakeStorage,
        )

        with self._lock:
            if not self._client:
                self._client = OneLakeClient.connect(self.onelake, self._credential)
        return OneLakeStorage(self._client, self._staging(), self._uploads(), note)

    @cached_property
    def _local(self) -> LocalStorage:
        return LocalStorage(self.landing_zone)

    @cached_property
    def landing_zone(self) -> Path:
        """The local folder of the landing zone, which may not contain the project."""
        if self.onelake:
            raise DbtConfigError(
                "The replicator applies landing zones on this machine. Fabric applies those in "
                "OneLake."
            )
        folder = folder_of(str(self.target.landing_zone), self._project())
        for name in ("replicate", "restore_baseline"):
            if getattr(self.target, name) and folder.parts[-2:] != _BESIDE_TABLES:
                raise ProfileError(
                    f"`{name}` needs a landing zone whose path ends in Files/LandingZone, not "
                    f"{str(folder)!r}: the mirrored tables are beside it, in Tables"
                )
        return folder

    @cached_property
    def database(self) -> MirroredDatabase:
        """The mirrored database in Fabric, if the landing zone is in OneLake."""
        from dbt.adapters.openmirroring.service.mirrored_database import MirroredDatabase

        if not self.onelake:
            raise ServiceError(
                f"The landing zone {self.target.landing_zone!r} is a folder of this machine, so "
                "it belongs to no mirrored database in Fabric. `dbt run-operation "
                "mirror_replicate` applies it."
            )
        return MirroredDatabase(self.onelake.workspace, self.onelake.item, self._credential)

    @cached_property
    def _credential(self) -> TokenCredential:
        return token_credential(self.target)

    def check(self) -> None:
        """Check that a publication would succeed, with a test file on the scratch pad.

        Raises:
            MirrorError: if it would not succeed
        """
        if self.onelake:
            require_token(self._credential, self.target)
            self.service.check_all()
        self._try_to_write()

    def check_before_nodes(self) -> None:
        """Check the landing zone and the identity before the first node is built.

        Raises:
            MirrorError: if nothing can be published
        """
        if self.onelake:
            require_token(self._credential, self.target)
            if not self.dry_run:
                self.service.check()
        if self.dry_run:
            self.storage().list(SCRATCH_PAD)
        if self.onelake or self.dry_run:
            return  # a run lists the scratch pad next, and locks each table before it is built
        with suppress(ConcurrentPublicationError):  # another command is checking it
            self._try_to_write()
        self.keep_out_of_git()

    def keep_out_of_git(self) -> None:
        """Let Git ignore the local landing zone and its mirrored tables."""
        zone = self.landing_zone
        item = zone.parents[1] if len(zone.parents) > 1 else zone
        is_named = item.suffix.lower() == ".mirroreddatabase"
        for folder in [item] if is_named else [zone, item / "Tables"]:
            keep_out_of_git(folder, self._project())

    def _try_to_write(self) -> None:
        storage = self.storage()
        folder = f"{SCRATCH_PAD}/_debug"
        with storage.lock(folder):
            # a check that was killed has left its file, and the folder itself is the lock
            for entry in storage.list(folder):
                storage.delete(f"{folder}/{entry.name}")
            storage.create(f"{folder}/file", b"")
            storage.rename(f"{folder}/file", f"{folder}/renamed")
            storage.delete(f"{folder}/renamed")

    @contextmanager
    def publication(self, table: TableFolder, owner: Owner) -> Iterator[Publication]:
        """Lock a table while it is published, by statements in a session without user code.

        Raises:
            MirrorError: if another run is publishing the table, or the service would not apply it
            DbtConfigError: if the target is a dry run
        """
        self.require_run()
        service = self.service if self.onelake else None
        if service:
            service.check()
        storage = self.storage()
        with self._lock:
            if self.target.source and not self._is_source_declared:
                declare_source(storage, source_events(self.target.source))
                self._is_source_declared = True
        publication = Publication(storage, table, owner, service)
        self.has_changed = True
        try:
            with self._own_session():
                yield publication
        finally:
            if publication.published_at:
                self.published[publication.table.mirrored_table] = publication.published_at
            publication.close()

    def check_table(self, table: TableFolder, rebuilds: bool) -> None:
        """Check whether the service will apply files that are published to a table.

        The service is Fabric, or the replicator if it has reported on a local landing zone.

        Raises:
            ServiceError: if the service will not apply them, or has lost the rows that they change
        """
        if not self.onelake and self.service.report(CHECK_AGE) is None:
            return  # no replicator has applied anything yet
        report = self.service.check_table(table.mirrored_table, rebuilds)
        if self.onelake and report and not rebuilds:
            refuse_lost(self.storage(), table, report)

    def waits_for(self, unfinished: Manifest) -> bool:
        """Check whether finishing a batch may wait for Fabric, up to half an hour."""
        return self.onelake is not None and unfinished.batch.starts_folder

    def require_run(self) -> None:
        """Refuse to change the landing zone if the target is a dry run."""
        if self.dry_run:
            raise ProfileError(
                "This target has `dry_run: true`, which changes nothing in the landing zone. Use "
                "another target.",
                code="OM104",
            )

    def report(self) -> tuple[ServiceReport, str]:
        """Return the report of the service, and why it gave none; empty if it could be asked."""
        try:
            report = self.service.report() or ServiceReport()
        except ServiceError as error:
            return ServiceReport(), error.text
        if self.onelake and report.status:
            report = with_visible_times(report, self.storage())
        return report, ""

    def replica_of(self, schema: str, identifier: str, seconds: float) -> replica.Replica:
        """Return the mirrored table of a relation, as `replica`, until the command ends."""
        found = last_published(self.storage(), schema, identifier)
        table, journal = found or (TableFolder(schema, identifier), None)
        return self._replicas.enter_context(self.replica(table, journal, seconds))

    @contextmanager
    def replica(
        self, table: TableFolder, journal: Journal | None, seconds: float
    ) -> Iterator[replica.Replica]:
        """Let Spark read a mirrored table, after everything that was published of it is applied.

        Args:
            journal: the journal of the table; None if it was never published
            seconds: how long to wait for that

        Raises:
            DbtRuntimeError: if it is not applied within that time, or cannot be read
        """
        if not self.onelake:
            yield replica.applied(self.landing_zone, table, self.target.replicate, seconds)
            return
        if not journal:
            raise DbtRuntimeError(
                f"{table} was not published yet, so there is no mirrored table to compare"
            )
        replica.check_installed()
        published = {table.mirrored_table: journal.files_at}
        if behind := self.service.not_applied(published, seconds):
            raise DbtRuntimeError(
                f"The last publication was not applied within {seconds:g} seconds: {behind[0]}"
            )
        keys = journal.batch.definition.key_columns
        with replica.onelake_replica(
            self.onelake, self._credential, table, keys, self._staging(), self._downloads()
        ) as found:
            yield found

    def end_command(self) -> None:
        """Replicate, wait and refresh as the profile says, if the command has changed anything."""
        self._replicas.close()
        has_changed, self.has_changed = self.has_changed, False
        if has_changed and self.target.replicate:
            lines, failed = replica.replicate(self.landing_zone, LOG_PREFIX)
            for line in ("", *lines):
                note(line)
            if failed:
                logger.warning(f"Not replicated: {', '.join(failed)}")
            self.keep_out_of_git()
        published, self.published = self.published, {}
        if published and self.target.wait_for_mirror:
            self._wait_for_mirror(published, self.target.wait_for_mirror)
        if published and self.target.refresh_sql_endpoint:
            refresh_sql_endpoint(self.database, self.service, self.storage(), published)

    def _wait_for_mirror(self, published: Mapping[str, datetime], seconds: float) -> None:
        """Wait until the published files are applied, and warn of tables that are not."""
        note(f"Waiting up to {seconds:g} seconds until all published files are applied")
        try:
            behind = self.service.not_applied(published, seconds)
        except ServiceError as error:
            logger.warning(error.msg)
            return
        if behind:
            told = f"Published, but not applied: {'; '.join(behind)}"
            logger.warning(with_code(told, "OM714"))
        else:
            tables = "table" if len(published) == 1 else "tables"
            note(f"All published files are applied ({len(published)} {tables})")

    def _staging(self) -> StagingFolder | None:
        """Return where Spark writes files to upload; None if it writes to OneLake."""
        # this import is slow, and a local landing zone does not need it
        from dbt.adapters.openmirroring.landing_zone.onelake.storage import StagingFolder

        given = self.target.staging_location
        if given and "://" in given:
            return StagingFolder(given)
        if given:
            return StagingFolder(file_url((self._project() / Path(given).expanduser()).resolve()))
        # the embedded Spark has no driver for OneLake, so dbt uploads its files
        warehouse = self._warehouse()
        return StagingFolder(file_url(warehouse.with_name("staging"))) if warehouse else None

    def _ask_service(self) -> ServiceReport | None:
        if self.onelake:
            return fabric_report(self.database, self.onelake, self._credential)
        return replicator_report(self.landing_zone)
