"""dbt in a process that gets a signal while four statements run in Livy: SIGNAL, POINT, arguments.

The point counts the questions for an answer while there are four, in threes.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from dbt.cli.main import cli

from dbt.adapters.openmirroring.spark.livy.client import LivyClient
from dbt.adapters.openmirroring.spark.livy.conversation import Conversation


def main() -> None:
    number, points = int(sys.argv[1]), iter(range(3 * int(sys.argv[2]), -1, -1))
    pause = Conversation._pause

    def paused(self: Any) -> None:
        if len(self._running) == 4 and next(points, -1) == 0:
            os.kill(os.getpid(), number)
        pause(self)

    setattr(Conversation, "_pause", paused)  # noqa: B010 - mypy
    # as many questions on each machine
    setattr(LivyClient, "pause_since", lambda self, start: 0.05)  # noqa: B010 - mypy
    cli(sys.argv[3:])


if __name__ == "__main__":
    main()
