"""A landing zone in a local folder, or in a folder of a mounted file system."""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from operator import attrgetter
from pathlib import Path

from filelock import BaseFileLock, FileLock, Timeout

from dbt.adapters.openmirroring.disk.patience import patiently
from dbt.adapters.openmirroring.landing_zone.errors import (
    ConcurrentPublicationError,
    LandingZoneUnavailableError,
    NotPlainError,
    PathExistsError,
)
from dbt.adapters.openmirroring.landing_zone.storage import (
    MAX_RECORD,
    Entry,
    below_root,
    components,
    not_plain,
    too_large,
)
from dbt.adapters.openmirroring.text.errors import ProfileError
from dbt.adapters.openmirroring.text.shown import shown, shown_url

# the folder of the lock files, beside the locked folders; no table has such a name
LOCKS = "_locks"

# attempts to create a lock file in a folder that other runs remove when they end
_ATTEMPTS = 100

# errors of a file system that does not support a call
_UNABLE = (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP)

# errors of deleting a folder in which another process writes, moves or mounts something
_IN_USE = (errno.EBUSY, errno.ENOTEMPTY)

# seconds between the attempts to delete such a folder
_PAUSES = (0.1, 0.2, 0.4, 0.8, 1.6, 3.2)

# nanoseconds to add to a time, which most file systems can tell apart
_CLOCK_STEP = 1_000_000

# The bit of reparse tags that stand for another place: links and junctions. Placeholders of
# OneDrive are reparse points without it ("Reparse Point Tags" of Windows' documentation).
_NAME_SURROGATE = 0x20000000

# what a URL with a typing error begins with, and a path of Windows
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_DRIVE = re.compile(r"[A-Za-z]:[\\/]")
# user@host:port; the names of folders rarely end in one of these domains
_HOST = re.compile(
    r"(?:[^/@]*@)?(?:localhost|[\w-]+(?:\.[\w-]+)*\.(?:com|net|org|io|cn|us))(?::\d+)?",
    re.IGNORECASE,
)


class LocalStorage:
    """A storage in a folder. Implements `Storage`.

    Args:
        root: the absolute path of the landing zone, which the first file creates; it may be a
            link, since the user has chosen it
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._system_root = _long(root)

    def url(self, path: str) -> str:
        return file_url(self._root.joinpath(*components(path)))

    def collect(self, folder: str) -> Sequence[Entry]:
        return self.list(folder)

    def list(self, folder: str) -> list[Entry]:
        entries = []
        with self._place("list", folder) as place, suppress(FileNotFoundError):
            for item in place.iterdir():
                with suppress(FileNotFoundError):  # the service moves files away meanwhile
                    state = item.lstat()
                    odd = oddity(state)
                    is_folder = stat.S_ISDIR(state.st_mode) and not odd
                    size = state.st_size if stat.S_ISREG(state.st_mode) else 0
                    entries.append(Entry(item.name, size, is_folder, state.st_mtime_ns, odd))
        return sorted(entries, key=attrgetter("name"))

    def read(self, path: str) -> bytes | None:
        with self._place("read", path) as place:
            try:
                with patiently(place.open, "rb") as file:
                    content = file.read(MAX_RECORD + 1)
            except FileNotFoundError:
                return None
        if len(content) > MAX_RECORD:
            raise too_large(self._root / path)
        return content

    def at_once(self, folder: str = "") -> LocalStorage:  # noqa: ARG002 - of Storage
        return self

    def write(self, path: str, content: bytes) -> None:
        with self._place("write", path, make=True) as place:
            # with a fixed suffix, the next write replaces the leftovers of a killed process
            with _beside(place, content, "new") as whole:
                patiently(whole.replace, place)
            self._flush(place.parent)

    def create(self, path: str, content: bytes) -> None:
        with self._place("write", path, make=True) as place:
            with _beside(place, content, secrets.token_hex(4)) as whole:
                self._move(whole, place)
            self._flush(place.parent)

    def rename(self, source: str, target: str) -> None:
        with (
            self._place("rename", source) as staged,
            self._place("rename a file to", target, make=True) as place,
        ):
            self._move(staged, place)

    def touch(self, path: str, after: int) -> int:
        with self._place("touch", path) as place:
            modified = max(time.time_ns(), after + _CLOCK_STEP)
            patiently(os.utime, place, ns=(modified, modified))
            flush(place)
            return place.stat().st_mtime_ns

    def flush(self, folder: str, files: Sequence[str] = ()) -> None:
        with self._place("flush", folder) as place:
            for name in files:
                with self._place("flush", f"{folder}/{name}") as file:
                    flush(file)
            self._flush(place)

    def delete(self, path: str) -> None:
        below_root(path)  # raises for the landing zone itself
        with self._place("delete", path, follows=False) as place, suppress(FileNotFoundError):
            for seconds in _PAUSES:
                try:
                    _remove(place)
                    return
                except OSError as error:
                    if error.errno not in _IN_USE:
                        raise
                    time.sleep(seconds)
            _remove(place)

    @contextmanager
    def lock(self, folder: str) -> Iterator[None]:
        """Hold a folder with a lock on a file beside it, which goes with the lock."""
        *above, name = below_root(folder)
        lock_path = "/".join((*above, LOCKS, name))
        with self._place("lock", lock_path) as lock_file, self._place("lock", folder) as place:
            for left in reversed(range(_ATTEMPTS)):
                try:
                    self._make(lock_file.parent)
                    lock = self._locked(lock_file, folder)
                    break
                except (FileNotFoundError, FileExistsError):  # another run removes the folder
                    if not left:
                        raise
        try:
            with self._place("lock", folder):
                self._make(place)
            yield
        finally:
            with suppress(OSError):  # not empty, or gone already
                place.rmdir()
            with suppress(OSError):  # on Windows the library removes it
                lock_file.unlink()
            lock.release()
            with suppress(OSError):
                lock_file.parent.rmdir()
                if above:
                    place.parent.rmdir()

    def _locked(self, file: Path, folder: str) -> BaseFileLock:
        """Lock the file of a folder. The system frees the lock when the process ends."""
        # a lock of the other kind stays when its process is killed
        lock = FileLock(file, timeout=0, thread_local=False, fallback_to_soft=False)
        try:
            lock.acquire()
        except Timeout:
            raise ConcurrentPublicationError(
                f"Another run holds {self._root / folder}: it is publishing this table now. "
                "Nothing was changed; run again when it has ended.",
                code="OM501",
            ) from None
        return lock

    @contextmanager
    def _place(
        self, action: str, path: str, make: bool = False, follows: bool = True
    ) -> Iterator[Path]:
        """Yield the full path of a file or folder, which need not exist.

        Others can write to a landing zone. A link could lead anywhere, a pipe blocks its reader,
        and a device is no data. So the way to a path is looked at before it is used.

        Args:
            action: what is done with it, for the message of an error
            make: whether to create missing folders above it
            follows: whether the path will be read or written, so that it must be plain itself

        Raises:
            NotPlainError: if it is no plain file or folder, if it is reached by a link, or if
                Windows takes one of its names for another one that is there
            LandingZoneUnavailableError: if the system refuses the action
        """
        names = below_root(path) if make else components(path)
        place = self._system_root.joinpath(*names)
        way = names if follows else names[:-1]
        try:
            wanted = os.path.join(os.path.realpath(self._system_root), *way)  # noqa: PTH118
            if os.path.realpath(self._system_root.joinpath(*way)) != wanted:
                self._refuse_way(way)
            if names and follows:
                with suppress(FileNotFoundError):
                    if found := oddity(place.lstat()):
                        raise not_plain(self._root.joinpath(*names), found)
            if sys.platform == "win32":
                _refuse_file_above(place)
            if make:
                self._make(place.parent)
            yield place
        except OSError as error:
            raise LandingZoneUnavailableError(
                f"Cannot {action} {shown(self._root / path)}: {error.strerror or shown(error)}. "
                "Check that `landing_zone` in the profile is a folder that this user may write to "
                "and that its disk has room, then run again."
            ) from error

    def _refuse_way(self, names: Sequence[str]) -> None:
        """Raise an error for the first name on a way that leads to another place."""
        for depth, name in enumerate(names, start=1):
            path = self._system_root.joinpath(*names[:depth])
            shown = self._root.joinpath(*names[:depth])
            if found := oddity(path.lstat()):
                raise not_plain(shown, found)
            there = Path(os.path.realpath(path)).name
            if there != name:
                raise NotPlainError(
                    f"{shown}: {name!r} is there as {there!r}, and Windows takes both for one. "
                    f"Nothing was changed. Set `alias` or `schema` to the name {there!r}, or move "
                    "that folder out of the landing zone; then run again."
                )

    def _make(self, folder: Path) -> None:
        """Create a folder with those above it. Those above the root survive a power loss."""
        if folder.is_dir():
            return
        root = self._system_root
        missing = [path for path in (root, *root.parents) if not path.exists()]
        patiently(folder.mkdir, parents=True, exist_ok=True)
        for made in missing:
            flush(made.parent)

    def _flush(self, folder: Path) -> None:
        """Make the names in a folder, and the folder itself, survive a power loss.

        The folders above it are flushed every time, because the process that created them may
        have died before it flushed them.
        """
        while folder != self._system_root:
            flush(folder)
            folder = folder.parent
        flush(folder)

    def _move(self, source: Path, target: Path) -> None:
        staged = source.lstat()
        try:
            move(source, target)
        except FileExistsError:
            # a process that died between link and unlink has left two names of the same file
            if not os.path.samestat(staged, target.lstat()):
                path = self._root / target.relative_to(self._system_root)
                raise PathExistsError(
                    f"{path} already exists with other content. It was left as it is."
                ) from None
            unlink(source)


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
        "path of a folder, begin it with ./",
        code="OM203",
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
    others = {"the dbt project": project.resolve()}
    with suppress(RuntimeError):  # a user of a container may have no home
        others["your home folder"] = Path.home().resolve()
    for name, other in others.items():
        if _contains(folder, other):
            raise ProfileError(
                f"`landing_zone` {landing_zone!r} is the folder {folder}, which contains {name}. "
                "Files in a landing zone are published. Give it a folder of its own, e.g. "
                "mirror.MirroredDatabase/Files/LandingZone",
                code="OM204",
            )
    return folder


def _contains(folder: Path, path: Path) -> bool:
    """Check whether a folder is a path or above it; a system may ignore the case of both."""
    above = (path, *path.parents)
    with suppress(OSError):  # one of them does not exist
        return folder in above or any(map(folder.samefile, above))
    return False


def file_url(path: Path) -> str:
    """Return the URL of an absolute path as Hadoop reads it: it decodes no `%20`."""
    text = path.as_posix()
    return f"file://{text if text.startswith('/') else f'/{text}'}"


def oddity(state: os.stat_result) -> str:
    """Return what an item is other than a plain file or folder; empty if it is one of them.

    A junction of Windows is a link too, which Python does not say.
    """
    if stat.S_ISLNK(state.st_mode) or getattr(state, "st_reparse_tag", 0) & _NAME_SURROGATE:
        return "a link"
    is_plain = stat.S_ISREG(state.st_mode) or stat.S_ISDIR(state.st_mode)
    return "" if is_plain else "neither a file nor a folder"


@contextmanager
def _beside(place: Path, content: bytes, suffix: str) -> Iterator[Path]:
    """Yield a new file whose content survives a power loss, to be moved in one step."""
    whole = place.with_name(f"_{place.name}.{suffix}")
    unlink(whole)  # an existing file may be a link
    try:
        with patiently(whole.open, "xb") as file:
            file.write(content)
            file.flush()
            flush(whole)  # while it is open, the system keeps an error of writing it
        yield whole
    except BaseException:
        unlink(whole)
        raise


def _remove(path: Path) -> None:
    """Remove a file, a link without its target, or a folder with all its content."""
    state = path.lstat()
    if oddity(state) or not stat.S_ISDIR(state.st_mode):
        unlink(path)
        return
    for item in path.iterdir():
        with suppress(FileNotFoundError):  # another process removed it first
            _remove(item)
    patiently(path.rmdir)


def move(source: Path, target: Path) -> None:
    """Move a file to a name that does not exist yet.

    Raises:
        FileExistsError: if the name exists
    """
    if sys.platform == "win32":
        patiently(source.rename, target)  # Windows never replaces a file by this call
        return
    try:
        # unlike rename(2), link(2) refuses to replace a file
        os.link(source, target)
    except OSError as error:
        if error.errno not in (*_UNABLE, errno.EPERM):
            raise
        # without hard links, only the table's lock prevents a race after this check
        if os.path.lexists(target):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST)) from None
        source.replace(target)
        return
    # the new name must be durable before the old one is removed
    flush(target.parent)
    source.unlink()


def unlink(path: Path) -> None:
    """Remove a file, or a link without its target. Do nothing if there is none."""
    patiently(path.unlink, missing_ok=True)


def flush(path: Path) -> None:
    """Make the content and time of a file, or the names in a folder, survive a power loss.

    Not every file system flushes folders. Windows does not: NTFS keeps a log of all changes of
    names.
    """
    is_folder = path.is_dir()
    if sys.platform == "win32":
        if not is_folder:  # it flushes only what is open for writing
            with patiently(path.open, "r+b") as file:
                os.fsync(file.fileno())
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _UNABLE or not is_folder:
            raise
    finally:
        os.close(descriptor)


def _refuse_file_above(path: Path) -> None:
    """Say what other systems say of a path below a file. To Windows, nothing is there."""
    for folder in path.parents:
        if folder.is_dir():
            return
        if folder.is_file():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))


def _long(path: Path) -> Path:
    """Return a path in the form that Windows does not limit to 260 characters."""
    text = str(path)
    if sys.platform != "win32" or text.startswith("\\\\?\\"):
        return path
    share = text.removeprefix("\\\\")
    return Path(f"\\\\?\\{text}" if share == text else f"\\\\?\\UNC\\{share}")
