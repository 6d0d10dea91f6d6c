"""Something goes wrong at one point of a run: an operation of the storage, or a statement."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

from dbt_common.exceptions import DbtDatabaseError, DbtRuntimeError

from dbt.adapters.openmirroring.landing_zone.errors import LandingZoneUnavailableError
from dbt.adapters.openmirroring.landing_zone.local import LocalStorage
from dbt.adapters.openmirroring.landing_zone.onelake import OneLakeStorage
from dbt.adapters.openmirroring.rewrite import Rewrite
from dbt.adapters.openmirroring.session import SessionHandle

KILLED = "killed"
KINDS = (KILLED, "fails", "answer is lost")

_OPERATIONS: tuple[tuple[type, str, type[DbtRuntimeError]], ...] = (
    *(
        (storage, name, LandingZoneUnavailableError)
        for storage in (LocalStorage, OneLakeStorage)
        for name in ("list", "read", "write", "create", "rename", "touch", "delete")
    ),
    # a local one lists
    (OneLakeStorage, "collect", LandingZoneUnavailableError),
    (SessionHandle, "execute", DbtDatabaseError),
    (Rewrite, "keep", DbtDatabaseError),
)


@dataclass
class Fault:
    """What goes wrong, and where.

    Args:
        point: the operation, counted from 1
        kind: `killed`: SIGKILL after it; `fails`: it is refused; `answer is lost`: it is carried
            out, but nobody knows
        happened: the run had that many points
    """

    point: int
    kind: str
    happened: bool = False
    _count: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def during(self, run: Callable[[], bool], meanwhile: Callable[[], object] = int) -> bool:
        """Run, with the fault; True if it succeeded.

        Args:
            meanwhile: done at the same time, beside a run that is killed
        """
        if self.kind == KILLED:
            child = _child(lambda: self._run(run))
            meanwhile()
            _, status = os.waitpid(child, 0)
            self.happened = os.WIFSIGNALED(status)
            return status == 0
        return self._run(run)

    def _run(self, run: Callable[[], bool]) -> bool:
        with ExitStack() as patches:
            for owner, name, error in _OPERATIONS:
                operation = _faulty(self, owner, name, error)
                patches.enter_context(patch.object(owner, name, operation))
            return run()

    def around(self, carry_out: Callable[[], Any], what: str, error: type[DbtRuntimeError]) -> Any:
        with self._lock:
            self._count += 1
            happens = self._count == self.point
        if not happens:
            return carry_out()
        self.happened = True
        if self.kind != "fails":
            carry_out()
        if self.kind == KILLED:
            os.kill(os.getpid(), signal.SIGKILL)
        raise error(f"{self.kind}: {what}")


def _child(run: Callable[[], bool]) -> int:
    """Run in a process that can be killed; Spark's is another, and outlives it."""
    child = os.fork()
    if child == 0:
        # a thread of its own has a connection of its own to Spark
        thread = threading.Thread(target=lambda: os._exit(0 if run() else 1))
        thread.start()
        thread.join()
        os._exit(2)
    return child


def _faulty(fault: Fault, owner: type, name: str, error: type[DbtRuntimeError]) -> Any:
    method = getattr(owner, name)

    def operation(self: Any, *args: Any) -> Any:
        what = f"{owner.__name__}.{name}{tuple(str(arg)[:300] for arg in args)}"
        return fault.around(lambda: method(self, *args), what, error)

    return operation
