"""The path of a landing zone on this machine, as the profile names it."""

from __future__ import annotations

import os
import re
from pathlib import Path

from dbt.adapters.openmirroring.text.errors import ProfileError
from dbt.adapters.openmirroring.text.shown import shown_url

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_DRIVE = re.compile(r"[A-Za-z]:[\\/]")
# user@host:port; the names of folders rarely end in one of these domains
_HOST = re.compile(
    r"(?:[^/@]*@)?(?:localhost|[\w-]+(?:\.[\w-]+)*\.(?:com|net|org|io|cn|us))(?::\d+)?",
    re.IGNORECASE,
)


def check_path(setting: str, text: str) -> None:
    """Check that a setting which is no URL is meant as the path of a folder.

    A URL with a typing error would become a folder of that name, which nobody mirrors.

    Raises:
        ProfileError: if it begins with a scheme or a host
    """
    if os.name == "nt" and _DRIVE.match(text):
        return
    if _HOST.fullmatch(text.partition("/")[0]):
        begins, url = "a host", f"https://{text}"
    elif _SCHEME.match(text):
        begins, url = "a scheme", re.sub(":/*", "://", text, count=1)
    else:
        return
    raise ProfileError(
        f"`{setting}` begins with {begins}, but is no URL. Is it {shown_url(url)}? If it is the "
        "path of a folder, begin it with ./"
    )


def folder_of(landing_zone: str, project: Path) -> Path:
    """Return the absolute path of a landing zone.

    Args:
        landing_zone: as the profile has it; a relative path starts at the project

    Raises:
        ProfileError: if files of somebody else are in it: the whole machine, the home folder of
            the user, or the project
    """
    folder = (project / Path(landing_zone).expanduser()).resolve()
    for other, name in ((project.resolve(), "the dbt project"), (_home(), "your home folder")):
        if other and folder in (other, *other.parents):
            raise ProfileError(
                f"`landing_zone` {landing_zone!r} is the folder {folder}, which contains {name}. "
                "Files in a landing zone are published. Give it a folder of its own, e.g. "
                "mirror.MirroredDatabase/Files/LandingZone"
            )
    return folder


def file_url(path: Path) -> str:
    """Return the URL of an absolute path as Hadoop reads it: it decodes no `%20`."""
    text = path.as_posix()
    return f"file://{text if text.startswith('/') else f'/{text}'}"


def _home() -> Path | None:
    try:
        return Path.home().resolve()
    except RuntimeError:  # a user of a container may have none
        return None
