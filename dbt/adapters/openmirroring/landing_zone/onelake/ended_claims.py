"""Claims in OneLake that runs of this machine have ended, but could not delete."""

from __future__ import annotations

import re
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

# seconds after which no record is needed, because the claim has expired
_LIFETIME = 3600

_HOLDER = re.compile(rb"[0-9a-f]{32}")


@dataclass(frozen=True)
class EndedClaims:
    """A folder with an empty file for each such claim, named after its holder.

    A run that ends deletes its claim. If OneLake refuses that, e.g. because the token has expired,
    the claim looks like that of a living run. This record says that its holder changes nothing
    more, so the next run on this machine need not wait until the claim expires. The record of a
    killed run does not exist, because nobody knows whether its last request still arrives.

    Args:
        folder: the folder, which need not exist
    """

    folder: Path

    def add(self, holder: bytes) -> None:
        """Record that the holder of a claim has ended. Without a record, the next run waits."""
        with suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True)
            (self.folder / holder.decode()).touch()
            for record in self.folder.iterdir():
                if time.time() - record.stat().st_mtime > _LIFETIME:
                    record.unlink(missing_ok=True)

    def has(self, holder: bytes) -> bool:
        """Check whether the holder of a claim has ended.

        Args:
            holder: the content of the claim, which anybody can have written
        """
        return bool(_HOLDER.fullmatch(holder)) and (self.folder / holder.decode()).exists()
