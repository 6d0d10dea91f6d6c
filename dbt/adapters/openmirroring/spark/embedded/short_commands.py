"""Commands that are too short for the optimizing compiler of the JVM.

HotSpot compiles a method that is called often with C1, and optimizes it later with C2. A command
with small tables ends before that pays off: on few cores, C2 only takes time from Spark. Large
tables need C2. So a command that was short the last time starts a JVM that has only C1.
"""

from __future__ import annotations

import hashlib
import time
from contextlib import suppress
from pathlib import Path

# C1 alone has room for 48 MB of code. The statements of a hundred tables fill that, and then Java
# compiles no more. Both compilers have 240 MB.
_ONLY_C1 = ("-XX:TieredStopAtLevel=1", "-XX:ReservedCodeCacheSize=240m")

# Seconds. A statement that takes longer spends them on rows, and a longer command runs so many
# statements that even their planning gains from C2.
_SHORT_STATEMENT = 5.0
_SHORT_COMMAND = 180.0


class ShortCommand:
    """The record of whether a command was short when it ran the last time.

    It only affects the speed: a wrong record makes one command slower.

    Args:
        home: the folder of the embedded Spark's files
        identity: what makes a command do the same work again: its name, selection and target
    """

    def __init__(self, home: Path, *identity: object) -> None:
        name = hashlib.sha256(repr(identity).encode()).hexdigest()[:16]
        self._record = home / "short" / name
        self._started = time.monotonic()
        self._has_run_statements = False
        self._has_long_statement = False

    def java_options(self) -> list[str]:
        """Return the Java options for the command; none if it was long, or is new."""
        return list(_ONLY_C1) if self._record.exists() else []

    def statement_took(self, seconds: float) -> None:
        """Note the time of one statement. Several threads may call this."""
        self._has_run_statements = True
        if seconds > _SHORT_STATEMENT:
            self._has_long_statement = True

    def end(self) -> None:
        """Record whether the command was short, if it has run statements."""
        if not self._has_run_statements:
            return
        is_long = time.monotonic() - self._started > _SHORT_COMMAND
        with suppress(OSError):  # the next command starts as a new one does
            if is_long or self._has_long_statement:
                self._record.unlink(missing_ok=True)
            else:
                self._record.parent.mkdir(exist_ok=True)
                self._record.touch()
