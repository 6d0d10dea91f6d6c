"""The settings of a profile for publishing."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dbt_common.exceptions import DbtConfigError

from dbt.adapters.openmirroring.landing_zone.local.path import folder_of
from dbt.adapters.openmirroring.landing_zone.onelake.url import OneLakeUrl
from dbt.adapters.openmirroring.service.authentication import Identity


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
        restore_snapshots: bring back what Spark has lost from the mirrored tables, so that a run
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
    restore_snapshots: bool = False
    refresh_sql_endpoint: bool = False

    @property
    def onelake(self) -> OneLakeUrl | None:
        """The landing zone, if it is in OneLake."""
        url = str(self.landing_zone)
        return OneLakeUrl.parse(url) if "://" in url else None

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
        return folder_of(str(self.landing_zone), project)
