"""A run: no probe stops another one, and all that the run has made is removed."""

from __future__ import annotations

import inspect
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.workspace.place import Place
from tests.workspace.probe import Probe, Saw, Steps, Until

# seconds between two looks at what the probes wait for, and between two lines about it
_PAUSE, _TELL = 5.0, 60.0

# called with a probe, what it saw, and its seconds
Record = Callable[[Probe, Saw, float], None]


class _Lane:
    """Probes that are asked one after another."""

    def __init__(self, probes: Sequence[Probe], place: Place, record: Record) -> None:
        self._left = deque(probes)
        self._place, self._record = place, record
        self._clock = place.clock
        self._asked: Probe | None = None
        self._steps: Steps | None = None
        self._until = Until(bool, 0)
        self._deadline = self._begun = 0.0

    @property
    def waits(self) -> Probe | None:
        return self._asked

    @property
    def is_done(self) -> bool:
        return not self._left and self._asked is None

    def go_on(self) -> bool:
        """Ask the next probe, or go on with the one that waits. Return whether anything moved."""
        try:
            if self._asked is None:
                return self._ask_next()
            assert self._steps, "a probe that waits has steps"
            happened = self._until.happened()
            if not happened and self._clock.monotonic() < self._deadline:
                return False
            self._wait(self._steps.send(happened))
        except StopIteration as end:
            self._end(end.value)
        except Exception as error:
            self._end(_failed(error))
        return True

    def _ask_next(self) -> bool:
        self._asked = self._left.popleft()
        self._begun = time.monotonic()
        steps = self._asked.steps(self._place)
        if inspect.isgenerator(steps):
            self._steps = steps
            self._wait(next(steps))
            return True
        assert isinstance(steps, Saw)
        self._end(steps)
        return True

    def _wait(self, until: Until) -> None:
        self._until = until
        self._deadline = self._clock.monotonic() + until.seconds

    def _end(self, seen: Saw) -> None:
        asked, self._asked, self._steps = self._asked, None, None
        assert asked, "a probe was asked"
        seconds = time.monotonic() - self._begun
        try:
            self._record(asked, seen, seconds)
        except ValueError as error:  # what it saw is not what a result may have
            self._record(asked, _failed(error), seconds)


def _failed(error: Exception) -> Saw:
    return Saw("failed", {"error": type(error).__name__}, (_told(error),))


def _told(error: Exception) -> str:
    return str(getattr(error, "msg", None) or getattr(error, "message", None) or error)


def ask(probes: Sequence[Probe], place: Place, record: Record) -> None:
    """Ask probes, those without a lane side by side, and those that disturb others at the end."""
    calm = [probe for probe in probes if not probe.is_last]
    names = dict.fromkeys(probe.lane for probe in calm if probe.lane)
    lanes = [[probe] for probe in calm if not probe.lane]
    lanes += [[probe for probe in calm if probe.lane == name] for name in names]
    _go_on([_Lane(lane, place, record) for lane in lanes], place)
    _go_on([_Lane([probe for probe in probes if probe.is_last], place, record)], place)


def _go_on(lanes: list[_Lane], place: Place) -> None:
    told = time.monotonic()
    while lanes := [lane for lane in lanes if not lane.is_done]:
        moved = [lane.go_on() for lane in lanes]
        if not any(moved):
            place.clock.sleep(_PAUSE)
        waiting = [str(lane.waits.number) for lane in lanes if lane.waits]
        if waiting and time.monotonic() - told > _TELL:
            told = time.monotonic()
            place.tell(f"waiting for Fabric: {', '.join(waiting)}")


@dataclass
class Made:
    """Something that a run has made.

    Args:
        what: it in words, after "there is still"
        how: how to remove it by hand
        remove: removes it; it is right if it is gone already
    """

    what: str
    how: str
    remove: Callable[[], object]


@dataclass
class Undo:
    """All that a run has made, in that order. It is removed from the end."""

    made: list[Made] = field(default_factory=list)

    def add(self, what: str, how: str, remove: Callable[[], object]) -> Callable[[], None]:
        """Remember something. Return what removes it before the end."""
        entry = Made(what, how, remove)
        self.made.append(entry)

        def undo() -> None:
            entry.remove()
            self.made.remove(entry)

        return undo

    def all(self, tell: Callable[[str], None], kept: Sequence[str] = ()) -> list[Made]:
        """Remove everything, whatever goes wrong. Return what is still there.

        Args:
            kept: what is not removed
        """
        left = []
        for entry in reversed(self.made):
            if entry.what in kept:
                continue
            try:
                entry.remove()
            except Exception as error:
                tell(f"{entry.what} was not removed: {_told(error)}")
                left.append(entry)
        return left


class Interruptions:
    """What Ctrl-C and the signals of the system do to a run.

    The first one stops the probes. While the run removes what it has made, none does anything: it
    takes a few requests, each with a limit.
    """

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._stops = False

    @contextmanager
    def handled(self) -> Iterator[None]:
        """Handle them until the end of the block."""
        # Windows has fewer, and only the main thread handles any
        is_main = threading.current_thread() is threading.main_thread()
        names = ("SIGINT", "SIGTERM", "SIGHUP") if is_main else ()
        signals = [getattr(signal, name) for name in names if hasattr(signal, name)]
        # what nohup and a shell's `&` have switched off stays so
        heard = [each for each in signals if signal.getsignal(each) != signal.SIG_IGN]
        before = {each: signal.signal(each, self._handle) for each in heard}
        try:
            yield
        finally:
            for each, handler in before.items():
                signal.signal(each, handler)

    @contextmanager
    def stop(self) -> Iterator[None]:
        """Let the first one raise KeyboardInterrupt in the block."""
        self._stops = True
        try:
            yield
        finally:
            self._stops = False

    def _handle(self, *_: Any) -> None:
        if not self._stops:
            self._tell("removing what this run has made: please wait")
            return
        self._stops = False
        raise KeyboardInterrupt
