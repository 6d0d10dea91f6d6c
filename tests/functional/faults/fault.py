"""Something goes wrong at one point of a run: an operation of the storage, or a statement."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

from dbt.adapters.spark.connections import PyhiveConnectionWrapper
from dbt.cli.main import dbtRunner
from dbt_common.exceptions import DbtDatabaseError, DbtRuntimeError

from dbt.adapters.openmirroring.landing_zone.errors import LandingZoneUnavailableError
from dbt.adapters.openmirroring.landing_zone.local.storage import LocalStorage
from dbt.adapters.openmirroring.landing_zone.onelake.storage import OneLakeStorage
from dbt.adapters.openmirroring.node.snapshot.reuse import KeptFiles
from dbt.adapters.openmirroring.spark.session import SessionHandle
from tests.functional.project import Project

KILLED = "killed"
KINDS = (KILLED, "fails", "answer is lost")

_OPERATIONS: tuple[tuple[type, str, type[DbtRuntimeError]], ...] = (
    *(
        (storage, name, LandingZoneUnavailableError)
        for storage in (LocalStorage, OneLakeStorage)
        for name in ("list", "read", "write", "create", "rename", "touch", "flush", "delete")
    ),
    # a local one lists
    (OneLakeStorage, "collect", LandingZoneUnavailableError),
    (SessionHandle, "execute", DbtDatabaseError),
    (PyhiveConnectionWrapper, "execute", DbtDatabaseError),
    (KeptFiles, "link_into", DbtDatabaseError),
)


@dataclass
class Fault:
    """A fault, and the point at which it happens.

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

    def during(
        self, project: Project, command: str, meanwhile: Callable[[], object] = int
    ) -> bool:
        """Let dbt do a command, with the fault; True if it succeeded.

        Args:
            meanwhile: done at the same time, beside a run that is killed
        """
        arguments = project.arguments(command)
        if self.kind == KILLED:
            child = self._process(arguments) if project.is_remote else self._fork(arguments)
            meanwhile()
            _, status = os.waitpid(child, 0)
            self.happened = os.WIFSIGNALED(status)
            return status == 0
        return self.invoke(arguments)

    def invoke(self, arguments: list[str]) -> bool:
        with ExitStack() as patches:
            for owner, name, error in _OPERATIONS:
                operation = _faulty(self, owner, name, error)
                patches.enter_context(patch.object(owner, name, operation))
            return dbtRunner().invoke(arguments).success

    def _fork(self, arguments: list[str]) -> int:
        """A process that can be killed, and has the Spark of this one, which outlives it."""
        child = os.fork()
        if child == 0:
            # a thread of its own has a connection of its own to Spark
            thread = threading.Thread(target=lambda: os._exit(not self.invoke(arguments)))
            thread.start()
            thread.join()
            os._exit(2)
        return child

    def _process(self, arguments: list[str]) -> int:
        """One that has nothing of this one: what a client of a server holds outlives no fork."""
        command = [sys.executable, "-m", __name__, str(self.point), *arguments]
        here = {"PYTHONPATH": str(Path(__file__).parents[3])}
        return os.posix_spawn(sys.executable, command, {**os.environ, **here})

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


def _faulty(fault: Fault, owner: type, name: str, error: type[DbtRuntimeError]) -> Any:
    method = getattr(owner, name)

    def operation(self: Any, *args: Any) -> Any:
        what = f"{owner.__name__}.{name}{tuple(str(arg)[:300] for arg in args)}"
        return fault.around(lambda: method(self, *args), what, error)

    return operation


if __name__ == "__main__":
    sys.exit(not Fault(int(sys.argv[1]), KILLED).invoke(sys.argv[2:]))
