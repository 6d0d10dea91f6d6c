"""What can go wrong at one step of a run: a statement, or an operation of the storage."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.openmirroring.destination.destination import Destination, Target
from dbt.adapters.openmirroring.destination.replica import Replica, ReplicaColumn
from dbt.adapters.openmirroring.landing_zone.local.storage import LocalStorage
from dbt.adapters.openmirroring.landing_zone.storage import Entry, Storage
from tests.unit.node.fake_rows import Rows

# the first words of steps that change nothing
READING = (
    *("list ", "read ", "flush ", "describe ", "show ", "set ", "mirror_find", "mirror_count"),
    *(
        "mirror_compare",
        "mirror_bad",
        "mirror_replica_view",
        "mirror_ambiguous",
        "mirror_key_bounds",
        "mirror_delta_operations",
    ),
)

KILLED, FAILS, LOST = "killed", "fails", "answer is lost"


class Killed(BaseException):
    """The process is gone. No handler of the package may catch this."""


@dataclass
class Fault:
    """What goes wrong at one step of a run.

    A step that changes nothing can only fail. A process that is killed before it has left the same
    as one that is killed before the next change.

    Args:
        point: the number of the step, counted from 1; 0 for none
        kind: `killed`: the process ends before the step; `fails`: the step is refused; `answer is
            lost`: the step is carried out, but the run gets an error
        step: the step, as `World.steps` has it, instead of its number
    """

    point: int = 0
    kind: str = KILLED
    step: str = ""
    happened: bool = False
    _steps: int = 0

    def around(self, carry_out: Callable[[], Any], step: str, error: type[DbtRuntimeError]) -> Any:
        self._steps += self.kind == FAILS or not step.startswith(READING)
        if self.happened and self.kind == KILLED:
            raise Killed  # a dead process does nothing more, whatever its code would clean up
        is_other = self._steps != self.point and step != self.step
        if self.happened or is_other or (self.kind != FAILS and step.startswith(READING)):
            return carry_out()
        self.happened = True
        if self.kind == KILLED:
            raise Killed
        if self.kind == LOST:
            carry_out()
        raise error(f"{self.kind}: {step}")


@dataclass(frozen=True)
class MirroredRows(Replica):
    """A mirrored table whose rows are known."""

    rows: Rows = field(default_factory=lambda: Rows({}, ()))

    @classmethod
    def having(cls, rows: Rows, keys: tuple[str, ...]) -> MirroredRows:
        columns = tuple(ReplicaColumn(name, type_) for name, type_ in rows.columns.items())
        return cls(columns, keys, "", (), rows=rows)


class WatchedDestination(Destination):
    """A local folder, whose operations are steps.

    Args:
        mirrored: returns the mirrored table
    """

    def __init__(
        self,
        target: Target,
        folder: Path,
        around: Callable[[str, Callable[[], Any]], Any],
        mirrored: Callable[[], MirroredRows],
    ) -> None:
        super().__init__(target, lambda: folder, lambda: None)
        self._around = around
        self._mirrored = mirrored

    @contextmanager
    def replica(self, *_: object) -> Iterator[Replica]:
        yield self._around("read the mirrored table", self._mirrored)

    def storage(self) -> Storage:
        return WatchedStorage(LocalStorage(self.landing_zone), self._around)


class WatchedStorage:
    """A storage whose operations are steps. Implements `Storage`."""

    def __init__(
        self, storage: LocalStorage, around: Callable[[str, Callable[[], Any]], Any]
    ) -> None:
        self._storage = storage
        self._around = around

    def url(self, path: str) -> str:
        return self._storage.url(path)

    def collect(self, folder: str) -> Sequence[Entry]:
        return self.list(folder)

    def at_once(self, folder: str = "") -> WatchedStorage:
        return self

    def lock(self, folder: str) -> AbstractContextManager[None]:
        return self._storage.lock(folder)

    def list(self, folder: str) -> list[Entry]:
        found: list[Entry] = self._around(f"list {folder}", lambda: self._storage.list(folder))
        return found

    def read(self, path: str) -> bytes | None:
        found: bytes | None = self._around(f"read {path}", lambda: self._storage.read(path))
        return found

    def write(self, path: str, content: bytes) -> None:
        self._around(f"write {path}", lambda: self._storage.write(path, content))

    def create(self, path: str, content: bytes) -> None:
        self._around(f"create {path}", lambda: self._storage.create(path, content))

    def rename(self, source: str, target: str) -> None:
        self._around(f"rename to {target}", lambda: self._storage.rename(source, target))

    def touch(self, path: str, after: int) -> int:
        time: int = self._around(f"touch {path}", lambda: self._storage.touch(path, after))
        return time

    def flush(self, folder: str, files: Sequence[str] = ()) -> None:
        self._around(f"flush {folder}", lambda: self._storage.flush(folder, files))

    def delete(self, path: str) -> None:
        self._around(f"delete {path}", lambda: self._storage.delete(path))
