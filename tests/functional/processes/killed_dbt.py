"""dbt in a process that is killed at a point of a publication: POINT, then dbt's arguments."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from typing import Any

from dbt.cli.main import cli

from dbt.adapters.openmirroring.landing_zone.local.storage import LocalStorage
from dbt.adapters.openmirroring.landing_zone.onelake.storage import OneLakeStorage
from dbt.adapters.openmirroring.spark.session import SessionHandle

# class, method, which of its calls, and whether it is carried out before the process dies
POINTS: dict[str, tuple[type, str, Callable[[str], bool], bool]] = {
    "while building": (SessionHandle, "execute", lambda sql: "create table" in sql, True),
    "after the manifest": (LocalStorage, "create", lambda path: "manifest" in path, True),
    "after the manifest in OneLake": (OneLakeStorage, "create", lambda p: "manifest" in p, True),
    "after the old folder is dropped": (
        LocalStorage,
        "delete",
        lambda path: path.endswith(".schema/orders"),
        True,
    ),
    "after the first file": (LocalStorage, "rename", lambda path: "rows" in path, True),
    "after the old snapshot is dropped": (
        SessionHandle,
        "execute",
        lambda sql: "rename to" in sql,
        False,
    ),
}


def main() -> None:
    owner, name, dies, applied = POINTS[sys.argv[1]]
    method = getattr(owner, name)

    def dying(self: Any, first: str, *args: Any) -> Any:
        if not dies(first):
            return method(self, first, *args)
        if applied:
            method(self, first, *args)
        os.kill(os.getpid(), signal.SIGKILL)
        return None

    setattr(owner, name, dying)
    cli(sys.argv[2:])


if __name__ == "__main__":
    main()
