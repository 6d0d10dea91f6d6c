"""The interface to the service that a rebuild waits for."""

from __future__ import annotations

from typing import Protocol


class ServiceWatch(Protocol):
    """A watch on the tables that the service mirrors.

    A table is named `schema.table`. Every method raises MirrorError if it waits too long, or if
    the service does not answer.
    """

    def check_answer(self, table: str) -> None:
        """Check, before a table's folder is dropped, that the service can be asked about it."""

    def wait_until_gone(self, table: str, dropped: bool) -> None:
        """Wait until a table has disappeared after its folder was dropped.

        Args:
            dropped: whether the folder was dropped just now; if not, it did not exist before, and
                the table may never have existed
        """

    def wait_until_back(self, table: str) -> None:
        """Wait until a table is mirrored again after its folder was recreated."""
