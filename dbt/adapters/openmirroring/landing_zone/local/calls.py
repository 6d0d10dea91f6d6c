"""Calls of the file system that are durable, and never replace a file unasked."""

from __future__ import annotations

import errno
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

# errors of a file system that does not support a call
UNABLE = (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP)

# seconds between the attempts
_PAUSES = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6)


def patiently(call: Callable[[], T]) -> T:
    """Make a call again while another process holds the file, which only Windows refuses.

    A virus scanner or OneDrive may hold it. Windows then says that a permission is missing.

    Raises:
        PermissionError: if the file was held all the time, or the permission is missing
    """
    for seconds in _PAUSES if sys.platform == "win32" else ():
        try:
            return call()
        except PermissionError:
            time.sleep(seconds)
    return call()


def write_new(path: Path, content: bytes) -> None:
    """Create or replace a file. Its content survives a power loss."""
    # do not write into an existing file, because it may be a link
    unlink(path)
    with patiently(lambda: path.open("xb")) as file:
        file.write(content)
    flush(path)


def move(source: Path, target: Path) -> None:
    """Move a file to a name that does not exist yet.

    Raises:
        FileExistsError: if the name exists
    """
    if sys.platform == "win32":
        patiently(lambda: source.rename(target))  # Windows never replaces a file by this call
        return
    try:
        # unlike rename(2), link(2) refuses to replace a file
        os.link(source, target)
    except OSError as error:
        if error.errno not in (*UNABLE, errno.EPERM):
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
    patiently(lambda: path.unlink(missing_ok=True))


def flush(path: Path) -> None:
    """Make the content and time of a file, or the names in a folder, survive a power loss.

    Not every file system flushes folders. Windows does not: NTFS keeps a log of all changes of
    names.
    """
    is_folder = path.is_dir()
    if sys.platform == "win32":
        if not is_folder:  # it flushes only what is open for writing
            with patiently(lambda: path.open("r+b")) as file:
                os.fsync(file.fileno())
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        if sys.platform == "darwin":
            import fcntl  # only on POSIX

            try:
                # fsync leaves the data in the cache of the disk
                fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
                return
            except OSError as error:
                if error.errno not in UNABLE:
                    raise
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in UNABLE or not is_folder:
            raise
    finally:
        os.close(descriptor)
