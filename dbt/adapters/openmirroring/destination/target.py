"""The settings of a profile for publishing."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from dbt_common.exceptions import DbtConfigError

from dbt.adapters.openmirroring.landing_zone.local.path import folder_of
from dbt.adapters.openmirroring.landing_zone.onelake.url import OneLakeUrl
from dbt.adapters.openmirroring.landing_zone.source import Source
from dbt.adapters.openmirroring.service.authentication import Identity


@dataclass(frozen=True)
class Target:
    """The place that a profile publishes to, and what a command does after publishing.

    Args:
        landing_zone: a local folder, or a URL in OneLake; a relative path starts at the project
        onelake: the landing zone, if it is in OneLake
        identity: the identity that requests tokens
        staging_location: where Spark writes files for OneLake: a URL, or a folder; a relative path
            starts at the project
        source: source of the data, to be declared to Fabric
        replicate: apply published files with the local replicator
        wait_for_mirror: seconds to wait until the service has applied the published files
        dry_run: publish nothing, and report what would be published
        restore_snapshots: bring back the snapshots that Spark has lost from the mirrored tables
        refresh_sql_endpoint: make the SQL analytics endpoint take over the published rows
    """

    landing_zone: str
    onelake: OneLakeUrl | None = None
    identity: Identity = field(default_factory=Identity)
    # hidden, because a URL may contain a password
    staging_location: str | None = field(default=None, repr=False)
    source: Source | None = None
    replicate: bool = False
    wait_for_mirror: float = 0
    dry_run: bool = False
    restore_snapshots: bool = False
    refresh_sql_endpoint: bool = False

    def folder(self, project: Path) -> Path:
        """Return the landing zone as an absolute path.

        Args:
            project: the folder of the dbt project

        Raises:
            DbtConfigError: if the landing zone is in OneLake, or contains the project
        """
        if self.onelake:
            raise DbtConfigError(
                "The replicator applies landing zones on this machine. Fabric applies those in "
                "OneLake."
            )
        return folder_of(self.landing_zone, project)
