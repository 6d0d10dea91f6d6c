"""What Python does not have of a file system: changes that survive, and renames that refuse."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import sys

# a file system that cannot do what it was asked
UNABLE = (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP)

# the function of the C library, and its flag that refuses to replace a file
_RENAME = ("renameatx_np", 4) if sys.platform == "darwin" else ("renameat2", 1)


def flush(descriptor: int) -> None:
    """Let the content of a file, or the names in a folder, survive a loss of power."""
    # macOS leaves it in the memory of the disk otherwise
    full = getattr(fcntl, "F_FULLFSYNC", None)
    if full is not None:
        try:
            fcntl.fcntl(descriptor, full)
            return
        except OSError as error:
            if error.errno not in UNABLE:
                raise
    os.fsync(descriptor)


def flush_names(folder: int) -> None:
    """Let the names in a folder survive, where the file system flushes folders."""
    try:
        flush(folder)
    except OSError as error:
        if error.errno not in UNABLE:
            raise


def rename_to_new(source: str, source_folder: int, target: str, target_folder: int) -> None:
    """Rename in one step, which also a loss of power does not divide.

    Args:
        source_folder, target_folder: descriptors

    Raises:
        FileExistsError: there is something at the target
        OSError: one of UNABLE where the file system, or the C library, has no such rename
    """
    name, no_replace = _RENAME
    rename = getattr(ctypes.CDLL(None, use_errno=True), name, None)
    if rename is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    names = os.fsencode(source), os.fsencode(target)
    if rename(source_folder, names[0], target_folder, names[1], ctypes.c_uint(no_replace)):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), source)
