"""The Spark servers of a profile: Spark Connect, a client without a JVM, and Livy."""

from __future__ import annotations

import importlib.util
import re
from dataclasses import dataclass, field
from urllib.parse import quote

from dbt_common.exceptions import DbtConfigError
from pyspark import __version__ as pyspark_version
from pyspark.sql import SparkSession

from dbt.adapters.openmirroring.text.errors import SparkError
from dbt.adapters.openmirroring.text.shown import shown_url

# the URL before `/;` and the parameters; a host may be an IPv6 address
_ADDRESS = re.compile(r"sc://([^/;?#]*@)?(\[[^\]/]+\]|[^][/:;?#@]+)(:\d+)?/?")
_PARAMETER = re.compile(r"[^=\s]+=[^=?#\s]+")

# the only hosts that Fabric's tokens are sent to
_FABRIC = re.compile(r"https://([\w-]+\.)*api\.fabric\.microsoft\.com/")
_URL = re.compile(r"https?://[^/@?#;\s]+(/[^@?#;\s]*)?")


@dataclass(frozen=True)
class ConnectServer:
    """A Spark Connect server.

    Args:
        url: `sc://<host>:<port>`, which may have parameters after `/;`
        timeout: the seconds to wait until the server answers
    """

    url: str = field(repr=False)
    token: str | None = field(default=None, repr=False)
    use_ssl: bool = False
    timeout: int = 0

    def check(self) -> None:
        """Raise a DbtConfigError if `host` is no address, or the client is missing or too old."""
        if not _ADDRESS.fullmatch(self.url.partition("/;")[0]):
            given = shown_url(self.url) or None
            raise DbtConfigError(
                f"`method: connect` needs `host: sc://<host>:<port>`, not {given!r}"
            )
        if "token=" in self.url:
            raise DbtConfigError(
                "`host` is shown by `dbt debug`: give its token as `token` in the profile"
            )
        for number, parameter in enumerate(self._parameters, 1):
            if not _PARAMETER.fullmatch(parameter):  # it may be a secret, so it is not shown
                raise DbtConfigError(
                    f"Parameter {number} after `/;` in `host` must be `<name>=<value>`. In a "
                    "value write %3D for =, %3B for ;, %3F for ? and %23 for #."
                )
        # the client of 3.5 breaks the other threads' statements when one of them ends its session
        if int(pyspark_version.partition(".")[0]) < 4:
            raise DbtConfigError(
                f"`method: connect` needs PySpark 4.0 or newer, and this is {pyspark_version}: "
                "pip install --upgrade 'dbt-openmirroring[connect]'"
            )
        if not importlib.util.find_spec("grpc"):
            raise DbtConfigError(
                "`method: connect` needs the client of Spark Connect: "
                "pip install 'dbt-openmirroring[connect]'"
            )

    @property
    def connection_string(self) -> str:
        """The connection string (Spark's documentation, "Client connection string")."""
        address, given = self.url.partition("/;")[0], self._parameters
        if self.use_ssl:
            given.append("use_ssl=true")
        if self.token:  # may have any character, e.g. the `=` of base64
            given.append(f"token={quote(self.token, safe='')}")
        return f"{address.rstrip('/')}/;{';'.join(given)}" if given else address

    @property
    def _parameters(self) -> list[str]:
        return [text for text in self.url.partition("/;")[2].split(";") if text]

    def new_session(self) -> SparkSession:
        """Open a new session on the server. The caller must stop it."""
        return SparkSession.builder.remote(self.connection_string).create()

    def wait_for_answer(self) -> None:
        """Make sure that the server runs. Spark's client alone would retry for ten minutes.

        Raises:
            FailedToConnectError: if the server does not answer in time
        """
        import grpc
        from pyspark.sql.connect.client import DefaultChannelBuilder

        with DefaultChannelBuilder(self.connection_string).toChannel() as channel:
            try:
                grpc.channel_ready_future(channel).result(timeout=self.timeout)
            except grpc.FutureTimeoutError:
                raise SparkError(
                    f"No Spark Connect server answered at {shown_url(self.url)} within "
                    f"{self.timeout} seconds. Check `host`, `use_ssl` and `connect_timeout` in "
                    "the profile, and that the server runs.",
                    code="OM606",
                ) from None


@dataclass(frozen=True)
class LivyServer:
    """A Livy server.

    Args:
        url: the URL of Livy; in Fabric the "session job connection string" of a lakehouse
        user, password: the login for an Apache Livy with basic authentication
    """

    url: str = field(repr=False)
    user: str | None = None
    password: str | None = field(default=None, repr=False)

    def check(self) -> None:
        """Raise a DbtConfigError if `host` is no URL, or the login is incomplete or for Fabric."""
        if not _URL.fullmatch(self.url):
            raise DbtConfigError(
                f"`method: livy` needs `host: <URL of Livy>`, not {shown_url(self.url) or None!r}."
                " In Fabric it is the session job connection string in the settings of the "
                "lakehouse: https://api.fabric.microsoft.com/v1/workspaces/<id>/lakehouses/<id>/"
                "livyapi/versions/2023-12-01/sessions"
            )
        if self.is_fabric and (self.user or self.password):
            raise DbtConfigError(
                "`user` and `password` are for Apache Livy. Set `authentication` for Fabric."
            )
        for given, missing in (("user", "password"), ("password", "user")):
            if getattr(self, given) and not getattr(self, missing):
                raise DbtConfigError(f"`method: livy` with `{given}` needs `{missing}` too.")

    @property
    def is_fabric(self) -> bool:
        """Whether the server is Fabric's and gets Fabric's tokens."""
        return bool(_FABRIC.match(f"{self.url}/"))

    @property
    def sessions(self) -> str:
        """The URL of all sessions."""
        return f"{self.url.rstrip('/').removesuffix('/sessions')}/sessions"
