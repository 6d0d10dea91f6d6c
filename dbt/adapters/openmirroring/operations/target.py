"""What a profile says of where it publishes to."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from dbt_common.exceptions import DbtConfigError

from dbt.adapters.openmirroring.landing_zone.onelake_url import OneLakeUrl
from dbt.adapters.openmirroring.landing_zone.source import Source
from dbt.adapters.openmirroring.service.authentication import Identity


@dataclass(frozen=True)
class Target:
    """Where a profile publishes to, and what a command does after that.

    Args:
        landing_zone: a local folder, or a URL in OneLake; a relative path starts at the project
        onelake: the landing zone, if it is in OneLake
        identity: for tokens
        staging_location: where Spark writes files for OneLake: a folder whose relative path starts
            at the project, or a URL
        source: of the data, as it is declared to Fabric
        replicate: apply what was published with the local replicator
        wait_for_mirror: seconds to wait until the service has applied what was published
        dry_run: publish nothing, and tell what would be published
        refresh_sql_endpoint: let the SQL analytics endpoint take over what was published
    """

    landing_zone: str
    onelake: OneLakeUrl | None = None
    identity: Identity = field(default_factory=Identity)
    # a URL may have a password
    staging_location: str | None = field(default=None, repr=False)
    source: Source | None = None
    replicate: bool = False
    wait_for_mirror: float = 0
    dry_run: bool = False
    refresh_sql_endpoint: bool = False

    def folder(self, project: Path) -> Path:
        """The landing zone as an absolute path.

        Args:
            project: the dbt project's folder

        Raises:
            DbtConfigError: it is in OneLake
        """
        if self.onelake:
            raise DbtConfigError(
                "The replicator applies landing zones on this machine. Fabric applies those in "
                "OneLake."
            )
        return (project / Path(self.landing_zone).expanduser()).resolve()
