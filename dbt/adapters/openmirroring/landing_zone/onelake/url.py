"""The URL of a landing zone in OneLake."""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass, replace
from urllib.parse import SplitResult, quote, unquote, urlsplit

from dbt.adapters.openmirroring.text.codes import with_code
from dbt.adapters.openmirroring.text.errors import ProfileError
from dbt.adapters.openmirroring.text.shown import shown_url

# Tokens are sent only to these hosts: the global endpoint, and the endpoints of regions and of
# workspaces with a private link (Fabric documentation, "Connecting to Microsoft OneLake" and "Set
# up and use workspace-level private links").
_HOST = re.compile(
    r"(([a-z0-9-]+-)?onelake|[0-9a-f]{32}\.z[0-9a-f]{2})\.dfs\.fabric\.microsoft\.com"
)

# of a landing zone
EXAMPLE = "https://onelake.dfs.fabric.microsoft.com/<workspace>/<item>.MirroredDatabase/Files/LandingZone"

# the hosts of Fabric's portal, and the page of a mirrored database in it
_PORTAL = re.compile(r"(app\.|msit\.)?(fabric\.microsoft|powerbi)\.com")
_PAGE = re.compile(r"/groups/([^/]+)/mirroreddatabases/([^/]+)", re.IGNORECASE)

FOLDER = "Files/LandingZone"

_TYPE = "MirroredDatabase"


@dataclass(frozen=True)
class OneLakeUrl:
    """The landing zone of a mirrored database.

    Args:
        host: the host of OneLake's DFS endpoint
        workspace: the name or GUID of the workspace
        item: the name of the mirrored database with its type, or its GUID
        folder: the path of the folder in the item
    """

    host: str
    workspace: str
    item: str
    folder: str = FOLDER

    @classmethod
    def parse(cls, url: str) -> OneLakeUrl:
        """Read a URL as Fabric's portal shows it (https), or as file systems name it (abfss).

        Raises:
            ProfileError: if it is not the URL of a landing zone in OneLake
        """
        try:
            parts = urlsplit(url)
            names = [unquote(name) for name in parts.path.strip("/").split("/")]
            if parts.scheme == "abfss":
                names.insert(0, unquote(parts.username or ""))
            problem = _problem(parts, names)
        except ValueError:  # its message may quote a password
            problem = f"it is not a URL, as in {EXAMPLE}."
        if problem:
            raise ProfileError(f"`landing_zone` {shown_url(url)!r}: {problem}")
        item, dot, _ = names[1].rpartition(".")
        return cls(str(parts.hostname), names[0], f"{item}.{_TYPE}" if dot else names[1])

    @property
    def account_url(self) -> str:
        """The URL of the storage account, in which each workspace is a file system.

        If this URL had more of the path, the client would rename from a path that does not exist.
        """
        return f"https://{self.host}"

    @property
    def root(self) -> str:
        """The path of the landing zone in its workspace."""
        return f"{self.item}/{self.folder}"

    @property
    def monitoring(self) -> OneLakeUrl:
        """The folder beside the landing zone where the service reports its status."""
        return replace(self, folder="Files/Monitoring")

    def mirrored_table(self, table: str) -> str:
        """Return the URL of a mirrored table, `schema.table`, for readers of Delta tables.

        Raises:
            ProfileError: if the name of the workspace or item needs percent-encoding in a URL
        """
        schema, _, identifier = table.rpartition(".")
        return f"{self._abfss('deltalake does', '')}/Tables/{schema}/{identifier}"

    @property
    def files_url(self) -> str:
        """The URL of the landing zone for what writes its files, or the same error."""
        item = self._abfss("Spark's driver for OneLake does", ", or set `staging_location`")
        return f"{item}/{self.folder}"

    def _abfss(self, who_does: str, or_else: str) -> str:
        for name in (self.workspace, self.item):
            if quote(name) != name:
                raise ProfileError(
                    f"{who_does} not take the name {name!r}. Use the GUIDs of workspace and item "
                    f"in `landing_zone`{or_else}."
                )
        return f"abfss://{self.workspace}@{self.host}/{self.item}"


def _problem(parts: SplitResult, names: list[str]) -> str:
    """Return why a URL is not that of a landing zone in OneLake; empty if it is."""
    if parts.scheme not in ("https", "abfss"):
        return f"it is neither a local folder nor in OneLake, as in {EXAMPLE}."
    host = parts.hostname or ""
    if _PORTAL.fullmatch(host):
        return _of_portal(parts.path)
    if not _HOST.fullmatch(host) or parts.port:
        return (
            "its host is not one of OneLake's, and tokens are sent nowhere else. They are "
            "onelake.dfs.fabric.microsoft.com, <region>-onelake.dfs.fabric.microsoft.com, and "
            "<workspace>.z<xy>.dfs.fabric.microsoft.com for a private link."
        )
    if parts.query or parts.fragment or parts.password:
        return "it must have no password, no query and no fragment."
    if parts.scheme == "https" and parts.username:
        return "it must have no user."
    _, dot, other = names[1].rpartition(".") if len(names) > 1 else ("", "", "")
    if dot and other and other.lower() != _TYPE.lower():
        return with_code(
            f"its item is a {other}, and Fabric mirrors files only from the landing zone of a "
            f"{_TYPE}, as in {EXAMPLE}. If {other} belongs to the name of the item, add its "
            f"type: {names[1]}.{_TYPE}.",
            "OM205",
        )
    if len(names) != 4 or "/".join(names[2:]) != FOLDER or not all(names):
        return f"it must be a workspace, an item and Files/LandingZone, as in {EXAMPLE}."
    workspace, item = names[:2]
    if any(re.search(r"[\x00-\x1f/\\]", name) or name in (".", "..") for name in names):
        return "one of its names is not allowed."
    if is_guid(workspace) != is_guid(item):
        return "OneLake takes either names or GUIDs, of both workspace and item."
    if not is_guid(item) and "." not in item:
        return f"the item needs its type: {item}.{_TYPE}."
    return ""


def _of_portal(path: str) -> str:
    """Return what is wrong with the address of a page of Fabric's portal."""
    page = _PAGE.search(path)
    right = f"it is {EXAMPLE}"
    if page and all(map(is_guid, page.groups())):
        right = f"https://onelake.dfs.fabric.microsoft.com/{page[1]}/{page[2]}/{FOLDER}"
        right = f"for this page it is {right}"
    return (
        "it is the address of a page in Fabric's portal. The URL of the landing zone is on the "
        f"page of the mirrored database, under `Landing zone`; {right}"
    )


def is_guid(name: str) -> bool:
    """Check whether the name of a workspace or item is a GUID."""
    try:
        return str(uuid.UUID(name)) == name.lower()
    except ValueError:
        return False
