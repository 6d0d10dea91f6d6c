"""Something goes wrong at one point of a run: an operation of the storage, or a statement."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

from dbt_common.exceptions import DbtDatabaseError, DbtRuntimeError

from dbt.adapters.openmirroring.landing_zone.errors import LandingZoneUnavailableError
from dbt.adapters.openmirroring.landing_zone.local import LocalStorage
from dbt.adapters.openmirroring.rewrite import Rewrite
from dbt.adapters.openmirroring.session import SessionHandle

KINDS = ("dies", "fails", "answer is lost")

_OPERATIONS: tuple[tuple[type, str, type[DbtRuntimeError]], ...] = (
    *(
        (LocalStorage, name, LandingZoneUnavailableError)
        for name in ("list", "read", "write", "create", "rename", "delete")
    ),
    (SessionHandle, "execute", DbtDatabaseError),
    (Rewrite, "keep", DbtDatabaseError),
)


@dataclass
class Fault:
    """What goes wrong, and where.

    Args:
        point: the operation, counted from 1
        kind: `dies`: the process is gone after it; `fails`: it is refused; `answer is lost`: it is
            carried out, but nobody knows
        operation: that it was, or None if the run has fewer points
    """

    point: int
    kind: str
    operation: str | None = None
    _count: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def around(self, carry_out: Callable[[], Any], what: str, error: type[DbtRuntimeError]) -> Any:
        with self._lock:
            self._count += 1
            happens = self._count == self.point
        if self._count > self.point and self.kind == "dies":
            raise DbtRuntimeError("a dead process does nothing more")
        if not happens:
            return carry_out()
        self.operation = what
        if self.kind != "fails":
            carry_out()
        raise error(f"{self.kind}: {what}")


@contextmanager
def fault(point: int, kind: str) -> Iterator[Fault]:
    """Let something go wrong in all that is run in here."""
    injected = Fault(point, kind)
    with ExitStack() as patches:
        for owner, name, error in _OPERATIONS:
            patches.enter_context(patch.object(owner, name, _faulty(injected, owner, name, error)))
        yield injected


def _faulty(injected: Fault, owner: type, name: str, error: type[DbtRuntimeError]) -> Any:
    method = getattr(owner, name)

    def operation(self: Any, *args: Any) -> Any:
        what = f"{owner.__name__}.{name}{tuple(str(arg)[:300] for arg in args)}"
        return injected.around(lambda: method(self, *args), what, error)

    return operation
