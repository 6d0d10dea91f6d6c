"""A file system that remembers what would be left after a loss of power.

It records what a run really does to the file system of this machine: which names it changes, and
what it flushes. From that record a loss of power at any point is played: what was flushed is
there, and of the rest any part may be.
"""

from __future__ import annotations

import errno
import os
import random
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from dbt.adapters.openmirroring.landing_zone.local import storage

ROOT = 0


@dataclass(frozen=True)
class Name:
    """A name in a folder: what it stands for from now on, None if it goes."""

    folder: int
    name: str
    before: int | None
    after: int | None


@dataclass(frozen=True)
class Event:
    """Names that change together or not at all, a flush, or a message of the run.

    Args:
        flushed: a folder, or a file with its content
    """

    names: tuple[Name, ...] = ()
    flushed: int | None = None
    content: bytes | None = None
    said: str = ""


@dataclass
class Recorder:
    """The record of a run.

    Args:
        root: the folder that is watched, which is empty in the beginning
    """

    root: Path
    events: list[Event] = field(default_factory=list)
    contents: dict[int, bytes] = field(default_factory=dict)
    folders: set[int] = field(default_factory=lambda: {ROOT})
    _nodes: dict[int, int] = field(default_factory=dict)
    _count: int = 0

    def __post_init__(self) -> None:
        self._nodes[self.root.stat().st_ino] = ROOT

    def watch(self, patched: pytest.MonkeyPatch, hard_links: bool = True) -> None:
        """Record what is done from now on.

        Args:
            hard_links: the file system has them
        """
        for name in ("open", "mkdir", "rmdir", "unlink", "replace"):
            recorded = _recorded(getattr(Path, name), getattr(self, f"_{name}"))
            patched.setattr(Path, name, recorded)
        patched.setattr(os, "link", _recorded(os.link, self._link) if hard_links else _refuse)
        patched.setattr(storage, "flush", _recorded(storage.flush, self._flush))

    def say(self, what: str) -> None:
        self.events.append(Event(said=what))

    def adopt(self) -> None:
        """Record what somebody else has written, who flushes nothing."""
        for folder, folders, files in os.walk(self.root):
            for name in (*folders, *files):
                path = Path(folder) / name
                if path.stat().st_ino not in self._nodes:
                    above = self._nodes[Path(folder).stat().st_ino]
                    node = self._new(path.stat().st_ino, path.is_dir())
                    self._change(Name(above, name, None, node))
                    if path.is_file():
                        self.contents[node] = path.read_bytes()

    def _new(self, inode: int, is_folder: bool) -> int:
        self._count += 1
        self._nodes[inode] = self._count
        if is_folder:
            self.folders.add(self._count)
        return self._count

    def _change(self, *names: Name) -> None:
        self.events.append(Event(names))

    def _at(self, folder: Path) -> int | None:
        """The number of a folder; None if it is above the landing zone."""
        return self._nodes.get(folder.stat().st_ino)

    def _appear(self, path: Path, is_folder: bool) -> None:
        above = self._at(path.parent)
        if above is not None:
            node = self._new(path.stat().st_ino, is_folder)
            self._change(Name(above, path.name, None, node))

    def _forget(self, found: os.stat_result) -> None:
        """Its number in the file system is used again when its last name is gone."""
        if stat.S_ISDIR(found.st_mode) or found.st_nlink == 1:
            del self._nodes[found.st_ino]

    def _open(self, path: Path, mode: str = "r", *_: Any, **__: Any) -> Any:
        yield
        if "x" in mode:
            self._appear(path, False)

    def _mkdir(self, path: Path, *_: Any, **__: Any) -> Any:
        is_new = not path.exists()
        yield
        # a call that creates folders above calls itself
        if is_new and path.stat().st_ino not in self._nodes:
            self._appear(path, True)

    def _unlink(self, path: Path, **_: Any) -> Any:
        found = _look(path)
        yield
        above = self._at(path.parent)
        # the library creates the file of a lock, which says nothing after a loss of power
        if found and above is not None and found.st_ino in self._nodes:
            self._change(Name(above, path.name, self._nodes[found.st_ino], None))
            self._forget(found)

    _rmdir = _unlink

    def _link(self, source: Path, target: Path) -> Any:
        yield
        folder = self._nodes[target.parent.stat().st_ino]
        self._change(Name(folder, target.name, None, self._nodes[target.stat().st_ino]))

    def _replace(self, source: Path, target: Path) -> Any:
        replaced = _look(target)
        yield
        node = self._nodes[target.stat().st_ino]
        self._change(
            Name(self._nodes[source.parent.stat().st_ino], source.name, node, None),
            Name(self._nodes[target.parent.stat().st_ino], target.name, None, node),
        )
        if replaced:
            self._forget(replaced)

    def _flush(self, path: Path) -> Any:
        yield
        inode = path.stat().st_ino
        if inode not in self._nodes:
            return  # above the landing zone
        node = self._nodes[inode]
        content = None
        if node not in self.folders:
            found = (path for path in self.root.rglob("*") if path.stat().st_ino == inode)
            content = next(found).read_bytes()
        self.events.append(Event(flushed=node, content=content))

    def losses(self, seeds: int) -> Iterator[Loss]:
        """Every point after `next` at which the power can be lost, with some of what may be left.

        Args:
            seeds: how many parts, of what was not flushed, are left at a point
        """
        for point in range(self.events.index(Event(said="next")) + 1, len(self.events) + 1):
            before = self.events[:point]
            loose = [i for i, event in enumerate(before) if self._is_loose(i, event, before)]
            for kept in _choices(loose, random.Random(point), seeds):
                yield Loss(self, before, frozenset(loose) - kept)

    @staticmethod
    def _is_loose(position: int, event: Event, before: Sequence[Event]) -> bool:
        """A change that nobody has flushed since."""
        folders = {name.folder for name in event.names}
        return bool(folders) and all(later.flushed not in folders for later in before[position:])


@dataclass(frozen=True)
class Loss:
    """A loss of power.

    Args:
        before: what was done until then
        lost: positions of the changes that are lost
    """

    recorder: Recorder
    before: Sequence[Event]
    lost: frozenset[int]

    @property
    def said(self) -> list[str]:
        """The messages of the run that is looked at."""
        said = [event.said for event in self.before if event.said]
        return said[said.index("next") + 1 :]

    def leave(self, folder: Path) -> None:
        """Make the folder what is left. Of a content that nobody has flushed it is a part."""
        names: dict[int, dict[str, int]] = {node: {} for node in self.recorder.folders}
        contents: dict[int, bytes] = {}
        for position, event in enumerate(self.before):
            if event.flushed is not None and event.content is not None:
                contents[event.flushed] = event.content
            for name in () if position in self.lost else event.names:
                if name.after is not None:
                    names[name.folder][name.name] = name.after
                elif names[name.folder].get(name.name) == name.before:
                    del names[name.folder][name.name]
        for node, whole in self.recorder.contents.items():
            contents.setdefault(node, whole[: len(self.lost) % max(1, len(whole))])
        _write(folder, ROOT, names, contents, {})


def _write(
    folder: Path,
    node: int,
    names: dict[int, dict[str, int]],
    contents: dict[int, bytes],
    written: dict[int, Path],
) -> None:
    folder.mkdir()
    for name, inside in names[node].items():
        path = folder / name
        if inside in names:
            _write(path, inside, names, contents, written)
        elif inside in written:
            os.link(written[inside], path)
        else:
            path.write_bytes(contents.get(inside, b""))
            written[inside] = path


def _choices(loose: Sequence[int], chance: random.Random, seeds: int) -> set[frozenset[int]]:
    """Return sets of the changes that are there although nobody has flushed them."""
    shares = [chance.random() for _ in range(seeds)]
    some = {frozenset(i for i in loose if chance.random() < share) for share in shares}
    return {frozenset(loose), frozenset(), *some}


def _look(path: Path) -> os.stat_result | None:
    try:
        return path.lstat()
    except FileNotFoundError:
        return None


def _recorded(function: Any, record: Any) -> Any:
    def call(*args: Any, **options: Any) -> Any:
        recording = record(*args, **options)
        next(recording)
        answer = function(*args, **options)  # a refused call is not recorded
        for _ in recording:
            pass
        return answer

    return call


def _refuse(*_: Any) -> None:
    raise OSError(errno.EPERM, "Operation not permitted")
