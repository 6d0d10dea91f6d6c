"""Spark Connect: a client without a JVM for a Spark on a server."""

from __future__ import annotations

import importlib.util
import re
from dataclasses import dataclass, field
from urllib.parse import quote

from dbt.adapters.exceptions.connection import FailedToConnectError
from dbt_common.exceptions import DbtConfigError
from pyspark import __version__ as pyspark_version
from pyspark.sql import SparkSession

# the URL before `/;` and the parameters; a host may be an IPv6 address
_ADDRESS = re.compile(r"sc://([^/;?#]*@)?(\[[^\]/]+\]|[^][/:;?#@]+)(:\d+)?/?")
_PARAMETER = re.compile(r"[^=\s]+=[^=?#\s]+")


@dataclass(frozen=True)
class Server:
    """A Spark Connect server.

    Args:
        url: `sc://<host>:<port>`, which may have parameters after `/;`
        shown_url: the URL without secrets, for messages
        token: the token that the client sends to the server
        use_ssl: whether to encrypt the connection
        timeout: the seconds to wait until the server answers
    """

    url: str = field(repr=False)
    shown_url: str
    token: str | None = field(default=None, repr=False)
    use_ssl: bool = False
    timeout: int = 0

    def check(self) -> None:
        """Make sure that the profile says how to reach the server.

        Raises:
            DbtConfigError: if `host` is not valid or has a token, or the client is not installed
                or too old
        """
        if not _ADDRESS.fullmatch(self._address):
            given = self.shown_url or None
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
        given = self._parameters
        if self.use_ssl:
            given.append("use_ssl=true")
        if self.token:  # may have any character, e.g. the `=` of base64
            given.append(f"token={quote(self.token, safe='')}")
        return f"{self._address.rstrip('/')}/;{';'.join(given)}" if given else self._address

    @property
    def _address(self) -> str:
        return self.url.partition("/;")[0]

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
                raise FailedToConnectError(
                    f"No Spark Connect server answered at {self.shown_url} within {self.timeout} "
                    "seconds. Check `host`, `use_ssl` and `connect_timeout` in the profile, and "
                    "that the server runs."
                ) from None
