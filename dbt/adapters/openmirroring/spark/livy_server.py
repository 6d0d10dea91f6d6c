"""Livy in the profile."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from dbt_common.exceptions import DbtConfigError

# Fabric's tokens go to these hosts and to no others.
_FABRIC = re.compile(r"https://([\w-]+\.)*api\.fabric\.microsoft\.com/")
_URL = re.compile(r"https?://[^/@?#;\s]+(/[^@?#;\s]*)?")


@dataclass(frozen=True)
class LivyServer:
    """Where Livy is.

    Args:
        url: of Livy; in Fabric the "session job connection string" of a lakehouse
        shown_url: without secrets, for messages
        user, password: of Apache Livy behind basic authentication
    """

    url: str = field(repr=False)
    shown_url: str
    user: str | None = None
    password: str | None = field(default=None, repr=False)

    def check(self) -> None:
        """Make sure that the profile says how to reach it.

        Raises:
            DbtConfigError: it does not
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
        """Fabric's tokens are sent there."""
        return bool(_FABRIC.match(f"{self.url}/"))

    @property
    def sessions(self) -> str:
        """The URL of all sessions."""
        return f"{self.url.rstrip('/').removesuffix('/sessions')}/sessions"
