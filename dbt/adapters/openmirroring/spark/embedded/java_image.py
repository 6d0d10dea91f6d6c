"""An image of the classes that the embedded Spark uses. Java starts faster with it.

The image is an archive of class data sharing (JEP 350). From Java 25 on it is an AOT cache (JEP
514), which also stores what to compile. After the second command, a separate process makes the
image once by publishing tables. Java checks whether an image fits, and starts without it if not.

An image belongs to the paths of the class path and to the times of its files. Java checks both, so
two environments cannot share an image.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyspark
from dbt_common.exceptions import DbtRuntimeError
from filelock import FileLock, Timeout
from platformdirs import user_cache_path

from dbt.adapters.openmirroring.__version__ import version
from dbt.adapters.openmirroring.spark.embedded.running_commands import StillRunningError

# the first Java version whose AOT cache can be made by a single process
_AOT_VERSION = 25

# bytes that are read at once
_BLOCK = 2**20

# bytes that must be free: an image has about 250 MB, and exists twice while it is made
_ROOM = 2**30

# seconds without use after which an image is removed
_UNUSED = 30 * 24 * 3600

# The number of images that are kept. If as many others were used within these seconds, no further
# one is made, because environments that take turns would replace each other's images all day.
_KEPT = 2
_IN_USE = 24 * 3600

# the state of a Spark of a user who has no folder for images
NO_IMAGES = (
    "is not prepared, because this user has no home folder; XDG_CACHE_HOME may name a folder for "
    "the images"
)

# how names of images end, and how names of folders begin in which one is made
_SUFFIXES = (".jsa", ".aot")
_UNFINISHED = "making-"

# The trainer is a module of its own, because it imports the adapter, which imports this module.
_PROGRAM = f"from {__package__}.image_trainer import main; main(gives_way={{}})"

# A process that nobody waits for lets all others go first, from its slow imports on. On Linux, the
# value of a process counts only within its session, and the sessions share the time by a value of
# their own.
_GIVE_WAY = """
import os
os.nice(19)
try:
    with open("/proc/self/autogroup", "w") as session:
        session.write("19")
except OSError:
    pass
"""


class JavaImageError(DbtRuntimeError):
    """The image of the classes cannot be made."""


class JavaImage:
    """The image for one Java, one version of Spark and one version of the adapter.

    Args:
        java_home: the home of the Java
        folder: the folder of all images
    """

    def __init__(self, java_home: Path, folder: Path) -> None:
        self._java_home = java_home
        self._folder = folder
        # of the Java itself, to which a wrapper has a link
        release = (java_home / "release").resolve()
        self._release = release.read_text() if release.is_file() else ""
        jars = Path(pyspark.__file__).parent
        parts = (self._release, str(release.parent), str(jars), pyspark.__version__, version)
        name = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
        found = re.search(r'JAVA_VERSION="(\d+)', self._release)
        if found and int(found[1]) >= _AOT_VERSION:
            suffix, self._input, self._output = ".aot", "AOTCache", "AOTCacheOutput"
        else:
            suffix, self._input, self._output = ".jsa", "SharedArchiveFile", "ArchiveClassesAtExit"
        self.path = self._folder / f"{name}{suffix}"
        # the file with the checksum of the image
        self._record = self.path.with_suffix(".sum")

    @property
    def is_there(self) -> bool:
        """Whether the image exists. An empty one records that it could not be made."""
        return bool(self._size())

    @property
    def is_wanted(self) -> bool:
        """Whether to make the image: it is missing, there is room, and no attempt has failed."""
        is_possible = self._release and self._size() is None
        return bool(is_possible) and self._has_room() and not self._is_crowded

    @property
    def _is_crowded(self) -> bool:
        recently = time.time() - _IN_USE
        return sum(_used(other) > recently for other in self._others()) >= _KEPT

    @property
    def description(self) -> str:
        """The state and the size of the image, for `dbt debug`."""
        size = self._size()
        if not self._release:
            return f"is not prepared: {self._java_home} does not say which Java it is"
        if self.is_there:
            return f"starts from {self.path} ({(size or 0) >> 20} MB)"
        if size == 0:
            return f"could not be prepared with this Java; delete {self.path} to try again"
        if not self._has_room():
            return f"is not prepared: {self._folder} cannot be written, or lacks room"
        if self._is_crowded:
            return f"is not prepared: {_KEPT} other environments use {self._folder} today"
        return f"will be prepared after the second command, in {self._folder}"

    def options(self) -> list[str]:
        """Return the Java options that use the image; none if it does not exist.

        A damaged image is removed, so that it is made again. Java would crash with it.
        """
        if not self.is_there:
            return []
        recorded = None
        with suppress(OSError, ValueError):
            recorded = self._record.read_text()
        if _checksum(self.path) != recorded:
            self.remove()
            return []
        with suppress(OSError):
            for path in (self.path, self._record):
                os.utime(path)  # so that it is not removed as unused
        return [f"-XX:{self._input}={self.path}"]

    def prepare(self) -> None:
        """Start a process that makes the image, from the second call for this image on.

        A machine that lives for one command would pay for an image that it never uses. Two
        processes at once do no harm.
        """
        if self._has_run_before():
            with suppress(OSError):
                self._start_trainer(gives_way=True, start_new_session=True)

    def make_now(self) -> None:
        """Have the image made, unless it is there, also if an earlier attempt has failed.

        Raises:
            JavaImageError: if it cannot be made; the message says why
        """
        if self.options():
            return
        if self._size() == 0:
            self.remove()
        if not self.is_wanted:
            raise JavaImageError(f"The embedded Spark {self.description}")
        trainer = self._start_trainer(gives_way=False, stderr=subprocess.PIPE, text=True)
        _, told = trainer.communicate()
        if not self.is_there:
            reason = told.strip().splitlines()[-1:] or ["Java has not written it"]
            raise JavaImageError(
                "The image of the embedded Spark's classes was not made with the Java in "
                f"{self._java_home}: {reason[0].strip()}"
            )

    def _start_trainer(self, gives_way: bool, **options: Any) -> subprocess.Popen[str]:
        # some of dbt's variables point to folders of the current command
        environment = {k: v for k, v in os.environ.items() if not k.startswith("DBT_")}
        program = (_GIVE_WAY if gives_way else "") + _PROGRAM.format(gives_way)
        command = [sys.executable, "-c", program, str(self._java_home), str(self._folder)]
        streams = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
        return subprocess.Popen(command, cwd="/", env=environment, **{**streams, **options})

    def make(self, train: Callable[[Path, Sequence[str]], None], waits: bool = False) -> None:
        """Make the image. If this fails, an empty file in its place records the failure.

        Args:
            train: runs Spark in a given folder with given Java options, to load its classes
            waits: whether to wait for another process that makes it
        """
        if not self.is_wanted:
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        with self._alone(waits) as is_alone:
            if not is_alone or not self.is_wanted:
                return
            for path in _listed(self._folder):  # left by killed processes
                if path.name.startswith(_UNFINISHED):
                    shutil.rmtree(path, ignore_errors=True)
            self._remove_others(_KEPT - 1)
            with tempfile.TemporaryDirectory(dir=self._folder, prefix=_UNFINISHED) as name:
                made = Path(name) / self.path.name
                try:
                    train(Path(name), [f"-XX:{self._output}={made}"])
                except StillRunningError:  # a later command starts another attempt
                    return
                except Exception as error:  # no retry, because it would occur again
                    print(error, file=sys.stderr)
                made.touch()
                self._record.write_text(_checksum(made))
                made.replace(self.path)

    def remove(self) -> None:
        """Remove an image that cannot be used, so that it is made again."""
        with suppress(OSError):
            self.path.unlink()

    def _others(self) -> list[Path]:
        """Return the other images, the one that was used last first."""
        found = [path for path in _listed(self._folder) if path.suffix in _SUFFIXES]
        others = [path for path in found if path != self.path and _size(path)]
        return sorted(others, key=_used, reverse=True)

    def _remove_others(self, kept: int) -> None:
        """Remove other images but for those used last, and what nobody has used for a month."""
        stems = {path.stem for path in self._others()[kept:]}
        month = time.time() - _UNUSED
        for path in _listed(self._folder):
            is_unused = path.stem != self.path.stem and _used(path) < month
            if path.suffix != ".lock" and (path.stem in stems or is_unused):
                with suppress(OSError):
                    path.unlink()

    def _has_run_before(self) -> bool:
        """Check whether this is not the first call for this image, and record the call."""
        mark = self.path.with_suffix(".seen")
        if _size(mark) is not None:
            return True
        with suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True)
            mark.touch()
            self._remove_others(_KEPT)
        return False

    def _size(self) -> int | None:
        return _size(self.path)

    def _has_room(self) -> bool:
        folder = self._folder
        while not os.path.lexists(folder):  # also false for a folder that cannot be reached
            folder = folder.parent
        try:
            is_writable = folder.is_dir() and os.access(folder, os.W_OK)
            return is_writable and shutil.disk_usage(folder).free > _ROOM
        except OSError:
            return False

    @contextmanager
    def _alone(self, waits: bool) -> Iterator[bool]:
        lock = FileLock(self._folder / "making.lock", timeout=-1 if waits else 0)
        try:
            lock.acquire()
        except Timeout:
            yield False
            return
        try:
            yield True
        finally:
            lock.release()


def images_folder() -> Path | None:
    """Return the folder of all images in the user's cache; None if the user has no home."""
    try:
        folder = user_cache_path("dbt-openmirroring") / "java"
    except RuntimeError:
        return None
    # older versions of platformdirs return a path that begins with `~`
    return folder if folder.is_absolute() else None


def _listed(folder: Path) -> list[Path]:
    with suppress(OSError):
        return list(folder.iterdir())
    return []


def _size(path: Path) -> int | None:
    with suppress(OSError):
        return path.stat().st_size
    return None


def _used(path: Path) -> float:
    """Return when a file was used, in seconds since 1970; 0 if it is gone."""
    with suppress(OSError):
        return path.stat().st_mtime
    return 0.0


def _checksum(path: Path) -> str:
    """Return the CRC-32 of a file; empty if it cannot be read.

    Java hardly checks an image: with zeros in the middle it ran on for minutes without starting.
    This takes less than 0.1 s for 220 MB.
    """
    checksum, block = 0, memoryview(bytearray(_BLOCK))
    with suppress(OSError), path.open("rb", buffering=0) as file:
        while size := file.readinto(block):
            checksum = zlib.crc32(block[:size], checksum)
        return f"{checksum:08x}"
    return ""
