"""What can go wrong at one step of a run: a statement, or an operation of the storage."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.openmirroring.destination.destination import Destination, Target
from dbt.adapters.openmirroring.destination.replica import Replica
from dbt.adapters.openmirroring.landing_zone.errors import ConcurrentPublicationError
from dbt.adapters.openmirroring.landing_zone.local.storage import LocalStorage
from dbt.adapters.openmirroring.landing_zone.storage import Entry, Storage
from dbt.adapters.openmirroring.types.columns import TypedColumn
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


@dataclass
class Pause(Fault):
    """Something else happens before one step of a run, which then goes on.

    Args:
        point: the number of the step, counted from 1, including those that change nothing
        meanwhile: what happens
    """

    meanwhile: Callable[[], object] = id  # type: ignore[assignment]

    def around(self, carry_out: Callable[[], Any], step: str, error: type[DbtRuntimeError]) -> Any:
        self._steps += 1
        if self._steps == self.point:
            self.happened = True
            self.meanwhile()
        return carry_out()


@dataclass
class Claim:
    """The claim of a command on the tables that it publishes, which ends early if it expires.

    As in OneLake, the command then changes nothing more in the landing zone.
    """

    is_over: bool = False
    locks: ExitStack = field(default_factory=ExitStack)

    def expire(self) -> None:
        self.is_over = True
        self.locks.close()

    def check(self) -> None:
        if self.is_over:
            raise ConcurrentPublicationError(
                "This run no longer holds its table. The next run finishes what was begun."
            )


@dataclass(frozen=True)
class MirroredRows(Replica):
    """A mirrored table whose rows are known."""

    rows: Rows = field(default_factory=lambda: Rows({}, ()))

    @classmethod
    def having(cls, rows: Rows, keys: tuple[str, ...]) -> MirroredRows:
        columns = tuple(TypedColumn(name, type_) for name, type_ in rows.columns.items())
        return cls(columns, keys, "", (), rows=rows)


class WatchedDestination(Destination):
    """A local folder, whose operations are steps.

    Args:
        mirrored: returns the mirrored table
        claim: of the command on its tables
    """

    def __init__(
        self,
        target: Target,
        folder: Path,
        around: Callable[[str, Callable[[], Any]], Any],
        mirrored: Callable[[], MirroredRows],
        claim: Claim,
    ) -> None:
        super().__init__(target, lambda: folder, lambda: None)
        self._around = around
        self._mirrored = mirrored
        self._claim = claim

    @contextmanager
    def replica(self, *_: object) -> Iterator[Replica]:
        yield self._around("read the mirrored table", self._mirrored)

    def storage(self) -> Storage:
        watched = WatchedStorage(LocalStorage(self.landing_zone), self._around, self._claim)
        return cast(Storage, watched)


class WatchedStorage:
    """A storage whose operations are steps. Implements `Storage`."""

    def __init__(
        self,
        storage: LocalStorage,
        around: Callable[[str, Callable[[], Any]], Any],
        claim: Claim,
    ) -> None:
        self._storage = storage
        self._around = around
        self._claim = claim

    def url(self, path: str) -> str:
        return self._storage.url(path)

    def collect(self, folder: str) -> Sequence[Entry]:
        found: Sequence[Entry] = self.list(folder)
        return found

    def at_once(self, folder: str = "") -> WatchedStorage:
        return self

    @contextmanager
    def lock(self, folder: str) -> Iterator[None]:
        with ExitStack() as lock:
            lock.enter_context(self._storage.lock(folder))
            self._claim.locks.callback(lock.close)
            yield

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Return an operation on a path."""
        operation = getattr(self._storage, name)

        def watched(path: str, *more: Any) -> Any:
            step = f"rename to {more[0]}" if name == "rename" else f"{name} {path}"

            def carry_out() -> Any:
                if not step.startswith(READING):
                    self._claim.check()
                return operation(path, *more)

            return self._around(step, carry_out)

        return watched
