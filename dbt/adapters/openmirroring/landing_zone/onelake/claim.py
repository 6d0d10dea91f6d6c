"""The claim of a run on a folder in OneLake."""

from __future__ import annotations

import secrets
import sys
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

# what the name of a claim file begins with; the name of the folder follows
CLAIM = "_claim."

# seconds of a request: in which it is sent again after a failure, and in which an attempt is
# connected and then answered
RETRYING = 90.0
CONNECTING = 10.0
ANSWERING = 30.0

# seconds between two renewals, and between two attempts to create a claim
RENEWAL = 20.0
PAUSE = 2.0

# Seconds since the last renewal after which the holder sends no change. Until then the next
# renewal may need all its retries, and the last one of them all its time.
LAST_CHANGE = RENEWAL + RETRYING + CONNECTING + ANSWERING

# Seconds until a claim expires. The last attempt of a change is over long before: it may also have
# to look up the name of its host, and to try several addresses.
EXPIRY = LAST_CHANGE + 3 * (CONNECTING + ANSWERING)

# attempts before giving up, because OneLake may answer inconsistently
_CONTRADICTIONS = 10


class Claim:
    """A file that its holder replaces at short intervals as long as the holder is alive.

    OneLake documents neither leases nor locks. But if several clients create a file at once with
    `If-None-Match: *`, or replace it with `If-Match`, one succeeds. So the holder creates the
    file, replaces it every 20 seconds, and deletes it in the end. Another run that finds the file
    watches it. If the file is replaced, the holder is alive. If the file is older than 270
    seconds, by OneLake's clock alone, the holder is dead. Then the run that replaces the file is
    the next holder. So nobody has to remove the leftovers of a killed run. They delay the next run
    by four and a half minutes at most.

    A holder that seems dead may only have slept. So it sends no change later than 150 seconds
    after it sent the last successful renewal, by a clock that also counts sleep. This holds for
    each attempt of each request that a change consists of, whatever they wait for: another page,
    `Retry-After` or a token. One attempt takes 40 seconds, and rarely longer. So the last change
    has arrived or failed before another run can hold the folder.

    Even if the network delays a change for longer, no file number is used twice. A manifest is
    created, and a file renamed, only if the target does not exist. And a manifest is valid only
    with the journal that it was planned against.

    Args:
        blob: the client for the file
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
        """Try to take the claim. Return False if a live run holds it.

        Args:
            waits: called before waiting to see whether the other run is alive

        Raises:
            LandingZoneUnavailableError: if OneLake refuses the claim, but shows no live holder
        """
        seen = None
        contradictions = 0
        while not self._put(seen.etag if seen and seen.is_over else None):
            there = self._look()
            if there and seen and there.etag != seen.etag:
                return False
            if there and not there.is_over:
                if not seen:
                    waits()
                time.sleep(RENEWAL)
            elif not there or (seen and seen.is_over):
                # just released or taken over, or OneLake refuses for an unknown reason
                contradictions += 1
                if contradictions == _CONTRADICTIONS:
                    raise LandingZoneUnavailableError(
                        f"OneLake refused {contradictions} times to create "
                        f"{self._blob.blob_name}, although no other run holds the folder. Nothing "
                        "was changed; run again later."
                    )
                time.sleep(PAUSE)
            seen = there
        try:
            self._renewing.start()
        except BaseException:
            self._delete()
            raise
        return True

    def check(self) -> None:
        """Check that a request which changes something may be sent.

        Raises:
            ConcurrentPublicationError: if another run may hold the folder by now
        """
        if self._lost or _now() - self._renewed > LAST_CHANGE:
            raise ConcurrentPublicationError(
                f"This run no longer holds its table: it could not renew {self._blob.blob_name} "
                "in OneLake in time, or somebody removed that file. Nothing more was changed. The "
                "next run finishes what was begun.",
                code="OM503",
            )

    def release(self) -> None:
        self._ended.set()
        self._renewing.join()
        self._delete()

    def _delete(self) -> None:
        # if it cannot be deleted, e.g. because the token has expired, it expires
        with suppress(AzureError, MirrorError):
            self._blob.delete_blob(etag=self._etag, match_condition=MatchConditions.IfNotModified)

    def _renew(self) -> None:
        while not self._ended.wait(RENEWAL):
            # if OneLake cannot be reached now, the next renewal may still be in time
            with suppress(AzureError, MirrorError):
                if not self._put(self._etag):
                    self._lost = True
                    return

    def _put(self, etag: str | None) -> bool:
        """Create the file, or replace it if its ETag is unchanged. Return whether it succeeded."""
        asked = _now()
        condition: dict[str, Any] = {}
        if etag:
            condition = {"etag": etag, "match_condition": MatchConditions.IfNotModified}
        try:
            answer = self._blob.upload_blob(self._holder, overwrite=bool(etag), **condition)
        except (ResourceExistsError, ResourceModifiedError):
            there = self._look()
            if there and there.holder == self._holder:
                # an earlier attempt succeeded, but its answer was lost
                return self._put(there.etag)
            return False
        self._etag = answer["etag"]
        self._renewed = asked
        return True

    def _look(self) -> _ClaimFile | None:
        answers: list[PipelineResponse[Any, Any]] = []
        try:
            download = self._blob.download_blob(raw_response_hook=answers.append)
        except ResourceNotFoundError:
            return None
        now = parsedate_to_datetime(answers[-1].http_response.headers["Date"])
        properties = download.properties
        age = (now - properties.last_modified).total_seconds()
        return _ClaimFile(download.readall(), properties.etag, age > EXPIRY)


@dataclass(frozen=True)
class _ClaimFile:
    """A claim file that exists.

    Args:
        holder: the content of the file, which identifies its holder
        is_over: whether its holder has not renewed it in time
    """

    holder: bytes
    etag: str
    is_over: bool


def _now() -> float:
    """Return the seconds of a clock that also counts the sleep of the machine."""
    if sys.platform == "win32":  # its monotonic clock counts sleep
        return time.monotonic()
    # on macOS, CLOCK_MONOTONIC counts sleep too
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))
