"""The progress of long nodes, for a user who waits at a terminal."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from dbt.adapters.openmirroring.spark.session import Tasks

# the steps of a node
PREPARING = "preparing"
RESTORING = "restoring"
BUILDING = "building"
CHECKING = "checking"
COMPARING = "comparing"
WRITING = "writing files"
WAITING = "waiting for tables before it"
PUBLISHING = "publishing"


@dataclass
class RunningNode:
    """A node that is running, since a time on the clock of the Progress."""

    name: str
    started: float
    tasks: Tasks
    step: str = PREPARING

    def line(self, now: float) -> str:
        tasks = self.tasks()
        done = f", {tasks[0]:,} of {tasks[1]:,} tasks" if tasks else ""
        return f"{self.name}: {self.step}{done}, {now - self.started:.0f} s"


class Progress:
    """The running nodes of a command. It prints a line for each long one every few seconds.

    dbt runs each node in one thread, so the current thread identifies the node.

    Args:
        show: prints a line; it is called in a separate thread. None shows nothing
        interval: seconds between two lines of a node, and before its first line
        clock: returns the time in seconds
    """

    def __init__(
        self,
        show: Callable[[str], None] | None,
        interval: float = 10.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._show = show
        self._interval = interval
        self._clock = clock
        self._nodes: dict[int, RunningNode] = {}
        self._lock = threading.Lock()
        self._idle = threading.Event()
        self._idle.set()

    @contextmanager
    def node(self, name: str, follow: Callable[[], Tasks]) -> Iterator[None]:
        """Show the progress of the node that this thread runs in the context.

        Args:
            follow: returns a function that reports the progress of this thread's Spark
        """
        if not self._show:
            yield
            return
        thread = threading.get_ident()
        with self._lock:
            self._nodes[thread] = RunningNode(name, self._clock(), follow())
            if self._idle.is_set():
                # a new event, because the old thread may not have seen yet that its event is set
                self._idle = threading.Event()
                arguments = (self._show, self._idle)
                threading.Thread(target=self._report, args=arguments, daemon=True).start()
        try:
            yield
        finally:
            with self._lock:
                del self._nodes[thread]
                if not self._nodes:
                    self._idle.set()

    def show_step(self, step: str) -> None:
        """Record the step that the node of this thread begins."""
        node = self._nodes.get(threading.get_ident())
        if node:
            node.step = step

    def uploads(self) -> Callable[[int, int], None] | None:
        """Return a callback for uploaded and total bytes, for any thread; None shows nothing."""
        return self._telling(
            lambda done, total: f"uploading, {done >> 20:,} of {total >> 20:,} MB"
        )

    def downloads(self) -> Callable[[int, int], None] | None:
        """Return a callback for downloaded rows and bytes; None shows nothing."""
        return self._telling(
            lambda rows, size: f"downloading the mirrored table, {rows:,} rows, {size >> 20:,} MB"
        )

    def _telling(self, step: Callable[[int, int], str]) -> Callable[[int, int], None] | None:
        node = self._nodes.get(threading.get_ident())
        if not node:
            return None

        def tell(done: int, total: int) -> None:
            node.step = step(done, total)

        return tell

    def lines(self) -> list[str]:
        """Return a line for each node that has run for at least one interval."""
        now = self._clock()
        with self._lock:
            nodes = list(self._nodes.values())
        return [node.line(now) for node in nodes if now - node.started >= self._interval]

    def _report(self, show: Callable[[str], None], idle: threading.Event) -> None:
        while not idle.wait(self._interval):
            for line in self.lines():
                show(line)
