"""The settings of the profile."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from typing import Any

from dbt.adapters.spark.connections import SparkCredentials
from dbt_common.dataclass_schema import StrEnum, ValidationError
from dbt_common.exceptions import DbtConfigError

from dbt.adapters.openmirroring.destination import replica
from dbt.adapters.openmirroring.destination.destination import Target
from dbt.adapters.openmirroring.landing_zone.local.storage import check_path
from dbt.adapters.openmirroring.landing_zone.onelake import url as onelake_url
from dbt.adapters.openmirroring.landing_zone.source import source_events
from dbt.adapters.openmirroring.spark.embedded import start as embedded_spark
from dbt.adapters.openmirroring.spark.servers import ConnectServer, LivyServer
from dbt.adapters.openmirroring.spark.session import SESSION_SETTINGS
from dbt.adapters.openmirroring.text.shown import shown_url

# a number of seconds, minutes or hours; only 0 needs no unit
_DURATION = re.compile(r"(0|\d{1,6}(?=[smh]))([smh]?)")
_SECONDS = {"s": 1, "m": 60, "h": 3600}

# without this prefix, Spark's Thrift server treats a client's settings as settings of Hive
_SET = "set:hiveconf:"


class ConnectionMethod(StrEnum):
    """How to reach Spark: the methods of dbt-spark, Spark Connect and Livy."""

    SESSION = "session"
    CONNECT = "connect"
    LIVY = "livy"
    THRIFT = "thrift"
    HTTP = "http"
    ODBC = "odbc"


# methods that send the `token` of the profile to Spark, so that Fabric needs another one
_SPARK_USES_TOKEN = (ConnectionMethod.CONNECT, ConnectionMethod.HTTP, ConnectionMethod.ODBC)

# settings that belong to methods of dbt-spark
_NOT_OF_LIVY = (
    *("auth", "cluster", "connect_retries", "connect_timeout", "connection_string_suffix"),
    *("driver", "endpoint", "kerberos_service_name", "organization", "poll_interval", "port"),
    *("query_retries", "query_timeout", "retry_all", "use_ssl"),
)

# the beginnings of settings by which other adapters for Fabric name a workspace and an item
_OF_PLACES = ("workspace", "lakehouse")

# the JSON types of settings
_TYPES = {
    "string": "text, in quotes",
    "number": "a number",
    "integer": "a whole number",
    "boolean": "true or false",
    "object": "names with values",
}


class AdapterType(str):
    """The type of the profile, which is equal to `spark` too.

    Packages choose their SQL and their options for Spark by `target.type == 'spark'`, and their
    choice is right here. As text, and as a key by which dbt finds the adapter, it is
    `openmirroring`.
    """

    __slots__ = ()
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        return super().__eq__(other) or other == "spark"

    def __ne__(self, other: object) -> bool:
        return not self == other


@dataclass
class OpenMirroringCredentials(Target, SparkCredentials):
    """The settings of dbt-spark's profile and those of this adapter, with those of `Target`.

    Args:
        host: for Spark Connect, `sc://<host>:<port>` with optional parameters; for Livy, its URL
        user, password: the login for Apache Livy or for a Thrift server
        reuse_session: keep the Livy session open for the next command
        session_options: options of a new Livy session, as in its documentation, e.g. `conf`
        spark_folder: the folder of the embedded Spark's tables, metastore and log; a relative path
            starts at the dbt project
        spark_idle_timeout: how long the embedded Spark stays ready after a command, such as
            `30s`, `10m` or `1h`; 0 ends it with the command

    Raises:
        DbtConfigError: if a setting is missing, not valid or not supported, or if two settings
            contradict each other
    """

    method: ConnectionMethod = ConnectionMethod.SESSION  # type: ignore[assignment]
    spark_folder: str = embedded_spark.FOLDER
    spark_idle_timeout: str | int = "10m"
    reuse_session: bool = False
    session_options: dict[str, Any] = field(default_factory=dict)
    # `repr=False`, because dbt-spark would show it
    password: str | None = field(default=None, repr=False)
    # with dbt-spark's 5 seconds, even the smallest statement sent by Thrift would take as long
    poll_interval: float = 0.1  # type: ignore[assignment]
    # with dbt-spark's 1, Thrift would send a statement again if the connection is lost while it
    # runs, which could insert the same rows twice
    query_retries: int = 0

    @classmethod
    def validate(cls, data: Any) -> None:
        try:
            super().validate(_with_new_names(data))
        except ValidationError as error:  # its text names no setting, but shows a secret
            hidden = {each.name for each in fields(cls) if not each.repr}
            raise DbtConfigError(_not_valid(error, hidden)) from None

    @classmethod
    def __pre_deserialize__(cls, data: Any) -> Any:
        given = _with_new_names(super().__pre_deserialize__(data))
        # dbt ignores a misspelled setting: with `dry_rum` a command would publish
        method = str(given.get("method", ConnectionMethod.SESSION))
        others = _NOT_OF_LIVY if method == ConnectionMethod.LIVY else ()
        known = {each.name for each in fields(cls)}.difference(others)
        for name in sorted(map(str, given.keys() - known - {"type", "threads"})):
            close = get_close_matches(name, known, n=1, cutoff=0.8)
            remedy = f"Did you mean `{close[0]}`?" if close else "Remove it."
            if name.lower().startswith(_OF_PLACES):
                remedy = (
                    "Remove it: `landing_zone` names the workspace and the mirrored database, as "
                    f"in {onelake_url.EXAMPLE}"
                )
            raise DbtConfigError(f"`{name}` is not a setting of `method: {method}`. {remedy}")
        return given

    def __post_init__(self) -> None:
        if not self.landing_zone:
            raise DbtConfigError(
                "Must specify `landing_zone` in profile: the folder that the mirrored database "
                "watches, e.g. mirror.MirroredDatabase/Files/LandingZone for a local one"
            )
        onelake = self.onelake
        if not onelake:
            check_path("landing_zone", self.landing_zone)
        if self.staging_location and not onelake:
            raise DbtConfigError("`staging_location` is for a landing zone in OneLake only")
        if "://" in (self.staging_location or ""):
            self._check_staging()
        elif self.staging_location:
            check_path("staging_location", self.staging_location)
        if self.source is not None:
            source_events(self.source)
        self._check_mirrored_tables()
        if self.refresh_sql_endpoint and not onelake:
            raise DbtConfigError(
                "`refresh_sql_endpoint` is for a landing zone in OneLake only: others have no SQL "
                "analytics endpoint"
            )
        if self.wait_for_mirror < 0:
            raise DbtConfigError("`wait_for_mirror` must be a number of seconds, 0 or more")
        if self.authentication == "token" and self.method in _SPARK_USES_TOKEN:
            raise DbtConfigError(
                f"`method: {self.method}` sends the `token` to Spark, so it cannot be the token "
                "for Fabric. Choose another `authentication`."
            )
        self.check_identity()
        self._check_spark()
        # dbt-spark requires a host, which `method: session` does not have
        self.host = self.host or "localhost"
        given = self.server_side_parameters
        super().__post_init__()
        # dbt-spark switches ANSI mode off in every session, even if the profile switches it on
        self.server_side_parameters = {str(key): str(given[key]) for key in given}
        if self.method != ConnectionMethod.SESSION:
            # `method: session` adds these settings when it finds its Spark
            self.server_side_parameters |= SESSION_SETTINGS
        if self.method == ConnectionMethod.THRIFT:
            self.server_side_parameters = {
                _SET + key.removeprefix(_SET): value
                for key, value in self.server_side_parameters.items()
            }

    @property
    def type(self) -> str:
        return AdapterType("openmirroring")

    @property
    def unique_field(self) -> str:
        return str(self.landing_zone)

    @property
    def idle_seconds(self) -> float:
        """The seconds for which the embedded Spark stays ready after a command."""
        number, unit = _DURATION.fullmatch(str(self.spark_idle_timeout)).groups()  # type: ignore[union-attr]
        return float(number) * _SECONDS[unit or "s"]

    @property
    def given(self) -> set[str]:
        """The names of the settings that are given for a login to Fabric."""
        others = {"token"} if self.method in _SPARK_USES_TOKEN else set()
        return super().given - others

    @property
    def server(self) -> ConnectServer:
        return ConnectServer(self.host or "", self.token, self.use_ssl, self.connect_timeout)

    @property
    def livy_server(self) -> LivyServer:
        return LivyServer(self.host or "", self.user, self.password)

    def _check_spark(self) -> None:
        if self.method == ConnectionMethod.CONNECT:
            self.server.check()
        if self.method == ConnectionMethod.LIVY:
            self.livy_server.check()
            if self.authentication == "token" and self.livy_server.is_fabric:
                raise DbtConfigError(
                    "`authentication: token` is a token for OneLake, and Fabric's Livy needs "
                    "another one. Choose another `authentication`."
                )
        elif self.reuse_session or self.session_options:
            name = "reuse_session" if self.reuse_session else "session_options"
            raise DbtConfigError(f"`{name}` is for `method: livy`, not {self.method}")
        has_master = "spark.master" in self.server_side_parameters
        is_embedded = self.method == ConnectionMethod.SESSION and not has_master
        if self.spark_folder != embedded_spark.FOLDER and not is_embedded:
            raise DbtConfigError(
                "`spark_folder` is for the embedded Spark only, and this profile uses another one"
            )
        if not _DURATION.fullmatch(str(self.spark_idle_timeout)):
            raise DbtConfigError(
                "`spark_idle_timeout` must be a time such as `30s`, `10m` or `1h`, or 0, not "
                f"{self.spark_idle_timeout!r}"
            )

    def _check_staging(self) -> None:
        # slow to import, and most profiles do not need it
        import fsspec

        try:
            fsspec.get_filesystem_class(str(self.staging_location).partition("://")[0])
        except (ImportError, ValueError) as error:
            raise DbtConfigError(
                f"`staging_location` {shown_url(str(self.staging_location))!r} cannot be read "
                f"here: {error}"
            ) from error

    def _check_mirrored_tables(self) -> None:
        """Check the options that create or read mirrored tables, beside the landing zone."""
        if self.replicate and self.onelake:
            raise DbtConfigError(
                "`replicate` is for a landing zone on this machine. Fabric applies those in "
                "OneLake."
            )
        for name in ("replicate", "restore_baseline"):
            if getattr(self, name) and not replica.is_installed():
                raise DbtConfigError(
                    f"`{name}` needs deltalake and pyarrow: "
                    "pip install 'dbt-openmirroring[replicator]'"
                )

    def connection_info(self, *, with_aliases: bool = False) -> list[tuple[str, Any]]:
        """Return the settings that `dbt debug` and `target` in macros show, without URL secrets.

        Args:
            with_aliases: for `target`, in which packages also read what this method does not use
        """
        keys = dict.fromkeys(self._connection_keys())
        if with_aliases:
            keys |= dict.fromkeys(("database", *super()._connection_keys()))
        values = self.to_dict(omit_none=False)
        return [
            (key, shown_url(values[key]) if isinstance(values[key], str) else values[key])
            for key in keys
        ]

    def _connection_keys(self) -> tuple[str, ...]:
        keys: tuple[Any, ...] = ("method", "schema", "landing_zone", "replicate")
        if self.dry_run:  # macros read it
            keys += ("dry_run",)
        if self.onelake:
            keys += ("authentication", "tenant_id", "client_id", "staging_location")
        if self.method == ConnectionMethod.LIVY:
            keys += ("host", "user", "authentication", "tenant_id", "client_id", "reuse_session")
        elif self.method == ConnectionMethod.CONNECT:
            keys += ("host",)
        elif self.method != ConnectionMethod.SESSION:
            keys += ("host", "port", "cluster", "endpoint", "organization")
        return keys


def _with_new_names(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings with the new name of one that is given by its former name."""
    if "restore_baseline" in data:
        return dict(data)
    names = {"restore_snapshots": "restore_baseline"}
    return {names.get(name, name): value for name, value in data.items()}


def _not_valid(error: ValidationError, hidden: Collection[str]) -> str:
    """Return by name what is wrong with a setting.

    Args:
        hidden: the settings whose values are secret
    """
    name, *inner = map(str, error.path)
    setting = f"`{'.'.join((name, *inner))}`"
    is_secret = bool(inner) or name in hidden
    told = setting if is_secret else f"{setting} is {json.dumps(error.instance, default=str)}"
    if error.validator == "enum":
        return (
            f"{told}. Allowed: {', '.join(error.validator_value)}. With session, the default, "
            "dbt starts a Spark of its own, or takes the one of its process."
        )
    schemas = [error.schema, *error.schema.get("anyOf", ())]
    allowed = [_TYPES[each["type"]] for each in schemas if each.get("type") in _TYPES]
    verdict = " is of another type" if is_secret else ""
    return f"{told}{verdict}. It must be {' or '.join(allowed)}."
