"""How a run holds a folder in OneLake."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any

from azure.core import MatchConditions
from azure.core.exceptions import (
    AzureError,
    ResourceExistsError,
    ResourceModifiedError,
    ResourceNotFoundError,
)
from azure.core.pipeline import PipelineResponse
from azure.storage.blob import BlobClient

from dbt.adapters.openmirroring.landing_zone.errors import (
    ConcurrentPublicationError,
    LandingZoneUnavailableError,
    MirrorError,
)

# the file that holds a folder
CLAIM = "_claim"

# seconds
RENEWAL = 20.0
EXPIRY = 270.0
PAUSE = 2.0

# so often OneLake may contradict itself before a run gives up
_CONTRADICTIONS = 10

# a claim that was last renewed longer ago is as good as lost
_LAST_CHANGE = 150.0


class Claim:
    """A file that is replaced again and again as long as its holder lives.

    OneLake documents neither leases nor locks. But of many who create a file with
    `If-None-Match: *`, or replace it with `If-Match`, one succeeds. So the holder creates the
    file, replaces it every 20 seconds, and deletes it in the end. Who finds it there looks for a
    while. If it is replaced, its holder lives. If it is older than 270 seconds, by the clock of
    OneLake alone, the holder is dead, and who replaces it is the next one. So nobody has to remove
    what a killed run has left: it delays the next run by four and a half minutes at most.

    A holder that seems dead may only have slept. Therefore it begins no change later than 150
    seconds after it has sent the last renewal that succeeded, by a clock that goes on while the
    machine sleeps. A request takes less than 120 with all its retries. So before somebody else can
    hold the folder, the last change has arrived or failed.

    Should the network keep a change for longer, still no number is given twice. A manifest is
    created, and a file renamed, only where there is nothing yet; and a manifest counts only with
    the journal that it was planned against.

    Args:
        blob: the file
    """

    def __init__(self, blob: BlobClient) -> None:
        self._blob = blob
        self._holder = secrets.token_hex(16).encode()
        self._etag = ""
        self._renewed = 0.0
        self._lost = False
        self._ended = threading.Event()
        self._renewing = threading.Thread(target=self._renew, daemon=True)

    def take(self, waits: Callable[[], object] = int) -> bool:
        """Whether it is ours now. If not, somebody who lives has it.

        Args:
            waits: told once, before it takes time to see whether somebody lives

        Raises:
            LandingZoneUnavailableError: OneLake refuses it, and shows nobody who has it
        """
        seen = None
        contradictions = 0
        while not self._put(seen.etag if seen and seen.age > EXPIRY else None):
            found = self._look()
            if found and seen and found.etag != seen.etag:
                return False
            if found and found.age <= EXPIRY:
                if not seen:
                    waits()
                time.sleep(RENEWAL)
            elif not found or (seen and seen.age > EXPIRY):
                # freed at this moment, or OneLake refuses for a reason that it does not show
                contradictions += 1
                self._check_contradictions(contradictions)
                time.sleep(PAUSE)
            seen = found
        self._begin_renewing()
        return True

    def _check_contradictions(self, count: int) -> None:
        if count == _CONTRADICTIONS:
            raise LandingZoneUnavailableError(
                f"OneLake refused {count} times to create {self._blob.blob_name}, although no "
                "other run holds the folder. Nothing was changed; run again later."
            )

    def _begin_renewing(self) -> None:
        try:
            self._renewing.start()
        except BaseException:
            self._delete()
            raise

    def check(self) -> None:
        """Make sure that a change may begin.

        Raises:
            ConcurrentPublicationError: somebody else may have the folder by now
        """
        if self._lost or _now() - self._renewed > _LAST_CHANGE:
            raise ConcurrentPublicationError(
                f"This run no longer holds {self._blob.blob_name.rpartition('/')[0]}: it could "
                "not renew its claim in OneLake in time, or somebody removed the claim. Nothing "
                "more was changed. The next run finishes what was begun."
            )

    def release(self) -> None:
        self._ended.set()
        self._renewing.join()
        self._delete()

    def _delete(self) -> None:
        # if it cannot be deleted, it expires
        with suppress(AzureError, MirrorError):
            self._blob.delete_blob(etag=self._etag, match_condition=MatchConditions.IfNotModified)

    def _renew(self) -> None:
        while not self._ended.wait(RENEWAL):
            # if OneLake cannot be reached now, it may be in time
            with suppress(AzureError, MirrorError):
                if not self._put(self._etag):
                    self._lost = True
                    return

    def _put(self, etag: str | None) -> bool:
        """Create the file, or replace it if it is as it was, and tell whether that succeeded."""
        asked = _now()
        condition: dict[str, Any] = {}
        if etag:
            condition = {"etag": etag, "match_condition": MatchConditions.IfNotModified}
        try:
            answer = self._blob.upload_blob(self._holder, overwrite=bool(etag), **condition)
        except (ResourceExistsError, ResourceModifiedError):
            found = self._look()
            if found and found.holder == self._holder:
                # the answer to an attempt that succeeded was lost
                return self._put(found.etag)
            return False
        self._etag = answer["etag"]
        self._renewed = asked
        return True

    def _look(self) -> _Found | None:
        answers: list[PipelineResponse[Any, Any]] = []
        try:
            download = self._blob.download_blob(raw_response_hook=answers.append)
        except ResourceNotFoundError:
            return None
        now = parsedate_to_datetime(answers[-1].http_response.headers["Date"])
        properties = download.properties
        age = (now - properties.last_modified).total_seconds()
        return _Found(download.readall(), properties.etag, age)


@dataclass(frozen=True)
class _Found:
    """A claim that is there.

    Args:
        age: seconds since it was replaced
    """

    holder: bytes
    etag: str
    age: float


def _now() -> float:
    """Seconds, also those that the machine has slept."""
    # macOS counts them in the other one
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))
