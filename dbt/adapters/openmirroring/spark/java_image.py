"""An image of the classes that the embedded Spark uses: Java starts from it in less time.

Java has an archive of class data sharing (JEP 350), and from version 25 on an AOT cache (JEP 514),
which also knows what to compile. The image is made once, after a command, by a process of its own
that publishes some small tables. Java checks whether an image fits, and starts without it if not.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pyspark
from platformdirs import user_cache_path

from dbt.adapters.openmirroring.__version__ import version

# the first one with an AOT cache that one process can make
_AOT_VERSION = 25

# bytes that must be free: an image has about 250 MB, and is twice there while it is made
_ROOM = 2**30

# seconds after which an image that nobody has used goes
_UNUSED = 30 * 24 * 3600

# seconds that Java has to write it
_PATIENCE = 300.0

# what most of Spark's classes for a publication are found by
_MODELS = {
    "small": "select id, 'a' as name from range({rows})",
    "large": "select id, sha2(cast(id as string), 256) as name from range({rows})",
    "plain": "select id, current_date() as day, array(id) as list from range({rows})",
}


class JavaImage:
    """The image for a Java, as this version of Spark and of the adapter need it.

    Args:
        java_home: of the Java
        folder: of all images; in the user's cache if not given
    """

    def __init__(self, java_home: Path, folder: Path | None = None) -> None:
        self._java_home = java_home
        self._folder = folder or user_cache_path("dbt-openmirroring") / "java"
        release = java_home / "release"
        self._release = release.read_text() if release.is_file() else ""
        jars = Path(pyspark.__file__).parent
        parts = (self._release, str(java_home.resolve()), str(jars), pyspark.__version__, version)
        name = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
        self.path = self._folder / f"{name}.{'aot' if self._is_aot else 'jsa'}"

    @property
    def is_there(self) -> bool:
        """It is, and whole: Java would crash where a part of it is missing."""
        return self._size() not in (None, 0) and str(self._size()) == self._size_made()

    @property
    def is_wanted(self) -> bool:
        """It is not there, and was not found to be impossible."""
        if not self._release or self.is_there or self._size() == 0:
            return False
        return self._has_room()

    def options(self) -> list[str]:
        """Java's options to start from it; none if it is not there."""
        if not self.is_there:
            return []
        with suppress(OSError):
            for path in (self.path, self._size_file):
                os.utime(path)  # it is in use
        return [f"-XX:{'AOTCache' if self._is_aot else 'SharedArchiveFile'}={self.path}"]

    def prepare(self) -> None:
        """Have it made in the background; two at once are one too many, and do no harm."""
        program = f"from {__name__} import main; main()"
        # of dbt's, some lead to folders of the command that was run
        environment = {k: v for k, v in os.environ.items() if not k.startswith("DBT_")}
        environment["JAVA_HOME"] = str(self._java_home)
        command = [sys.executable, "-c", program, str(self._java_home), str(self._folder)]
        with suppress(OSError):
            subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                cwd="/",
                env=environment,
            )

    def make(self) -> None:
        """Make it; what cannot be made is remembered by an empty file."""
        if not self.is_wanted:
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        with self._alone() as is_alone:
            if not is_alone or not self.is_wanted:
                return
            with tempfile.TemporaryDirectory(dir=self._folder, prefix="making-") as name:
                made = Path(name) / self.path.name
                train(Path(name), [f"-XX:{self._output}={made}"])
                made.touch()
                self._size_file.write_text(str(made.stat().st_size))
                made.replace(self.path)
            self.remove_unused()

    def remove(self) -> None:
        """Let it be made anew: Java did not start from it."""
        with suppress(OSError):
            self.path.unlink()

    def remove_unused(self) -> None:
        """Remove the images that nobody has started from for a month."""
        for path in self._folder.iterdir():
            with suppress(OSError):
                if path.stem != self.path.stem and path.stat().st_mtime < time.time() - _UNUSED:
                    if path.is_dir():
                        shutil.rmtree(path)
                    else:
                        path.unlink()

    @property
    def _size_file(self) -> Path:
        return self.path.with_suffix(".size")

    def _size(self) -> int | None:
        with suppress(OSError):
            return self.path.stat().st_size
        return None

    def _size_made(self) -> str:
        with suppress(OSError, ValueError):
            return self._size_file.read_text()
        return ""

    @property
    def _is_aot(self) -> bool:
        found = re.search(r'JAVA_VERSION="(\d+)', self._release)
        return found is not None and int(found[1]) >= _AOT_VERSION

    @property
    def _output(self) -> str:
        return "AOTCacheOutput" if self._is_aot else "ArchiveClassesAtExit"

    def _has_room(self) -> bool:
        folder = self._folder
        while not folder.exists():
            folder = folder.parent
        return os.access(folder, os.W_OK) and shutil.disk_usage(folder).free > _ROOM

    @contextmanager
    def _alone(self) -> Iterator[bool]:
        with self.path.with_suffix(".lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
                return
            yield True


def train(folder: Path, options: list[str]) -> None:
    """Publish small tables with a Java of its own: load, change set, and nothing changed.

    Args:
        folder: where everything is
        options: of Java
    """
    # both import much that who only looks for an image does not need
    from dbt.cli.main import dbtRunner

    from dbt.adapters.openmirroring.spark import embedded as embedded_spark
    from dbt.adapters.openmirroring.spark import process as process_spark

    (folder / "models").mkdir()
    target = "{type: openmirroring, schema: training, landing_zone: zone, threads: 1}"
    (folder / "profiles.yml").write_text(
        f"training: {{target: local, outputs: {{local: {target}}}}}\n"
    )
    (folder / "dbt_project.yml").write_text(
        "name: training\nversion: '1.0'\nprofile: training\nmodels: {+materialized: table}\n"
        "flags: {send_anonymous_usage_stats: false}\n"
    )
    spark = embedded_spark.start(folder, {"spark.driver.memory": "1g"}, lambda _: options)
    gateway = spark.sparkContext._gateway
    places = ["--project-dir", str(folder), "--profiles-dir", str(folder)]
    for rows in (10, 10, 11):
        for name, sql in _MODELS.items():
            key = "{{ config(unique_key='id') }}" if name != "plain" else ""
            (folder / "models" / f"{name}.sql").write_text(f"{key}\n{sql.format(rows=rows)}\n")
        dbtRunner().invoke(["run", "--quiet", *places])
    spark.stop()
    process_spark.end_jvm(gateway, _PATIENCE)


def main() -> None:
    """Make the image for a Java home, in a folder."""
    os.nice(19)
    JavaImage(*map(Path, sys.argv[1:])).make()
