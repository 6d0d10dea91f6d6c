"""File system calls that Python lacks: durable flushes, and renames that never overwrite."""

from __future__ import annotations

import ctypes
import errno
import os
import sys

# errors of a file system that does not support a call
UNABLE = (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP)

# the function of the C library, and its flag for not replacing a file
_RENAME = ("renameatx_np", 4) if sys.platform == "darwin" else ("renameat2", 1)


def flush(descriptor: int) -> None:
    """Make the content of a file, or the names in a folder, survive a power loss."""
    import fcntl  # only on POSIX

    # on macOS, fsync leaves the data in the cache of the disk
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
    """Make the names in a folder survive a power loss, if the file system can flush folders."""
    try:
        flush(folder)
    except OSError as error:
        if error.errno not in UNABLE:
            raise


def rename_to_new(source: str, source_folder: int, target: str, target_folder: int) -> None:
    """Rename a file atomically, even if the power fails. Never replace an existing file.

    Args:
        source_folder, target_folder: the descriptors of the folders

    Raises:
        FileExistsError: if the target exists
        OSError: with a number in UNABLE, if the file system or the C library has no such rename
    """
    name, no_replace = _RENAME
    rename = getattr(ctypes.CDLL(None, use_errno=True), name, None)
    if rename is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    names = os.fsencode(source), os.fsencode(target)
    if rename(source_folder, names[0], target_folder, names[1], ctypes.c_uint(no_replace)):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), source)
