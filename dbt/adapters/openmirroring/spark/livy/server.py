"""The Livy server of the profile."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from dbt_common.exceptions import DbtConfigError

# The only hosts that Fabric's tokens are sent to.
_FABRIC = re.compile(r"https://([\w-]+\.)*api\.fabric\.microsoft\.com/")
_URL = re.compile(r"https?://[^/@?#;\s]+(/[^@?#;\s]*)?")


@dataclass(frozen=True)
class LivyServer:
    """A Livy server.

    Args:
        url: the URL of Livy; in Fabric the "session job connection string" of a lakehouse
        shown_url: the URL without secrets, for messages
        user, password: the login for an Apache Livy with basic authentication
    """

    url: str = field(repr=False)
    shown_url: str
    user: str | None = None
    password: str | None = field(default=None, repr=False)

    def check(self) -> None:
        """Make sure that the profile says how to reach Livy.

        Raises:
            DbtConfigError: if the URL is not valid, or the login is incomplete or for Fabric
        """
        if not _URL.fullmatch(self.url):
            raise DbtConfigError(
                f"`method: livy` needs `host: <URL of Livy>`, not {self.shown_url or None!r}. In "
                "Fabric it is the session job connection string in the settings of the lakehouse: "
                "https://api.fabric.microsoft.com/v1/workspaces/<id>/lakehouses/<id>/livyapi/"
                "versions/2023-12-01/sessions"
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
