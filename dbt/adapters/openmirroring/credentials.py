"""The profile."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dbt.adapters.spark.connections import SparkConnectionMethod, SparkCredentials
from dbt_common.exceptions import DbtConfigError

from dbt.adapters.openmirroring import replica
from dbt.adapters.openmirroring.landing_zone.source import Source


@dataclass
class OpenMirroringCredentials(SparkCredentials):
    """What dbt-spark's profile has, and the landing zone.

    Args:
        landing_zone: a local folder; a relative path starts at the dbt project
        source: what `_partnerEvents.json` tells of the source
        replicate: apply what was published to mirrored tables beside the landing zone, at the end
            of each run, as the service would

    Raises:
        DbtConfigError: no landing zone, one of a kind that is not supported, or one that cannot be
            replicated; a source that is not described as it must be
    """

    landing_zone: str | None = None
    source: dict[str, Any] | None = None
    replicate: bool = False

    def __post_init__(self) -> None:
        if not self.landing_zone:
            raise DbtConfigError(
                "Must specify `landing_zone` in profile: the folder that the mirrored database "
                "watches, e.g. mirror.MirroredDatabase/Files/LandingZone for a local one"
            )
        if "://" in self.landing_zone:
            raise DbtConfigError(
                f"`landing_zone` {self.landing_zone!r} is not a local folder: this version "
                "publishes to local folders only"
            )
        if self.source is not None:
            Source.parse(self.source)
        if self.replicate:
            self._check_replicator()
        self.method = self.method or SparkConnectionMethod.SESSION
        # required by dbt-spark, though a session has none
        self.host = self.host or "localhost"
        ansi = self.server_side_parameters.get("spark.sql.ansi.enabled")
        super().__post_init__()
        # dbt-spark switches ANSI mode off in every session, also against the user's word
        del self.server_side_parameters["spark.sql.ansi.enabled"]
        if ansi is not None:
            self.server_side_parameters["spark.sql.ansi.enabled"] = str(ansi)

    @property
    def type(self) -> str:
        return "openmirroring"

    @property
    def unique_field(self) -> str:
        return str(self.landing_zone)

    def landing_zone_path(self, project: Path) -> Path:
        """The landing zone as an absolute path.

        Args:
            project: the dbt project's folder, where relative paths start
        """
        return (project / Path(str(self.landing_zone)).expanduser()).resolve()

    def _check_replicator(self) -> None:
        if Path(str(self.landing_zone)).parts[-2:] != ("Files", "LandingZone"):
            raise DbtConfigError(
                f"`replicate` needs a landing zone whose path ends in Files/LandingZone, not "
                f"{self.landing_zone!r}: the mirrored tables get their place beside it, in Tables"
            )
        if not replica.is_installed():
            raise DbtConfigError(
                "`replicate` needs deltalake and pyarrow: "
                "pip install 'dbt-openmirroring[replicator]'"
            )

    def _connection_keys(self) -> tuple[str, ...]:
        keys: tuple[Any, ...] = ("method", "schema", "landing_zone", "replicate")
        if self.method != SparkConnectionMethod.SESSION:
            keys += ("host", "port", "cluster", "endpoint", "organization")
        return keys
