"""Records of Livy sessions: which one a command uses, and which one it leaves to the next.

A killed command cannot end its session, and statements run on in it. So each session has a file,
and a lock that its command holds: a session whose lock is free has no command any more.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from filelock import FileLock, Timeout
from pydantic import BaseModel, ValidationError


class SessionRecord(BaseModel, frozen=True):
    """What a record says of a session.

    Args:
        url: of all sessions of its Livy
        made_for: a hash of its options and its identity
        is_used: whether a command uses it, or was killed while it did
    """

    url: str
    session: str
    made_for: str
    is_used: bool = True


class RecordFile:
    """The record of a session, with its lock."""

    def __init__(self, folder: Path, name: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._path = folder / f"{name}.json"
        # the thread that ends a command may be another one
        self._lock = FileLock(folder / f"{name}.lock", timeout=0, thread_local=False)
        self._lock.acquire()

    def read(self) -> SessionRecord | None:
        """Return what it says; None if it is damaged or gone."""
        try:
            return SessionRecord.model_validate_json(self._path.read_bytes())
        except (OSError, ValidationError):
            return None

    def write(self, record: SessionRecord) -> None:
        self._path.write_text(record.model_dump_json())

    def release(self) -> None:
        """Leave the session to the next command."""
        self._lock.release()

    def remove(self) -> None:
        """Forget the session, which has ended."""
        self._path.unlink(missing_ok=True)
        self._lock.release()
        with suppress(OSError):  # on Windows another command may look at it
            Path(self._lock.lock_file).unlink()


def left_records(folder: Path) -> Iterator[RecordFile]:
    """Yield the records of commands that do not run any more, each locked."""
    for path in sorted(folder.glob("*.json")):
        with suppress(Timeout):
            yield RecordFile(folder, path.stem)
