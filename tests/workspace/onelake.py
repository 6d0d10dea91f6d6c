"""Probes of OneLake: conditions, renames, digests and listings, with Azure's own clients."""

from __future__ import annotations

import threading
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from hashlib import md5
from typing import Any
from urllib.parse import quote

from azure.core import MatchConditions
from azure.core.exceptions import AzureError, HttpResponseError
from azure.storage.blob import ContentSettings

from tests.workspace.place import Place
from tests.workspace.probe import Saw, probe, saw

FOLDER = "_scratchPad/probes.onelake"

# rounds in which two requests want the same
_ROUNDS = 10


def code_of(error: HttpResponseError) -> str:
    """Return the code with which OneLake has refused a request."""
    headers = getattr(error.response, "headers", {})  # the type in azure-core has none
    return str(headers.get("x-ms-error-code") or "none")


def _rename(place: Place, source: str, target: str, **options: Any) -> dict[str, Any]:
    """Rename a file with Azure's own client, and return the answer."""
    file = place.azure_files().get_file_client(quote(place.full(source)))
    answers: list[Any] = []
    file.rename_file(
        f"{place.workspace}/{place.full(target)}",
        raw_response_hook=lambda response: answers.append(response.http_response),
        **options,
    )
    return dict(answers[-1].headers) if answers else {}


@probe(
    20,
    group="storage",
    asks="Is a rename with `If-None-Match: *` refused if the target exists, and its header not "
    "rejected?",
    assumes="Yes, with 409 or 412.",
    source='storage REST, "Path - Create", for ADLS; OneLake parity names no conditions',
    rests_on="landing_zone/onelake/storage.py::_move",
    otherwise="Let `rename` create the target with Put Blob, whose condition OneLake keeps, and "
    "delete the staged file.",
)
def rename_to_an_existing_file(place: Place) -> Saw:
    blobs = place.azure_blobs()
    for name in ("source", "target"):
        blobs.upload_blob(place.full(f"{FOLDER}/{name}"), name.encode(), overwrite=True)
    try:
        headers = _rename(
            place,
            f"{FOLDER}/source",
            f"{FOLDER}/target",
            match_condition=MatchConditions.IfMissing,
        )
    except HttpResponseError as error:
        found = blobs.get_blob_client(place.full(f"{FOLDER}/target")).download_blob().readall()
        kept = found == b"target"
        is_as_assumed = error.status_code in (409, 412) and kept
        return saw(
            is_as_assumed,
            refused=True,
            status=error.status_code,
            code=code_of(error),
            target_kept=kept,
        )
    rejected = headers.get("x-ms-rejected-headers", "")
    return saw(False, refused=False, header_rejected="if-none-match" in rejected.lower())


@probe(
    21,
    group="storage",
    asks="Of two Put Blob requests with `If-None-Match: *` at once, does one win? Have `Date` and "
    "`Last-Modified` the same clock?",
    assumes="Yes, and yes.",
    source="no page says so for OneLake; clients of Delta rely on it",
    rests_on="landing_zone/onelake/claim.py::take",
    otherwise="Let a claim be an append to one file, whose position decides who was first.",
)
def two_claims_at_once(place: Place) -> Saw:
    blobs = place.azure_blobs()
    winners: list[int] = []
    apart: list[float] = []

    def write(round_: int, codes: list[int]) -> None:
        answers: list[Any] = []
        try:
            blobs.get_blob_client(place.full(f"{FOLDER}/claim-{round_}")).upload_blob(
                b"x", raw_response_hook=lambda response: answers.append(response.http_response)
            )
        except HttpResponseError as error:
            codes.append(error.status_code or 0)
            return
        codes.append(201)
        dates = answers[-1].headers
        now, written = (parsedate_to_datetime(dates[name]) for name in ("Date", "Last-Modified"))
        apart.append(abs((now - written).total_seconds()))
        apart_here.append((now - datetime.now(timezone.utc)).total_seconds())

    apart_here: list[float] = []
    refused: set[int] = set()
    for round_ in range(_ROUNDS):
        codes: list[int] = []
        threads = [threading.Thread(target=write, args=(round_, codes)) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        winners.append(codes.count(201))
        refused |= set(codes) - {201}
    is_as_assumed = set(winners) == {1} and max(apart, default=99) <= 2
    return saw(
        is_as_assumed,
        rounds_with_one_winner=winners.count(1),
        rounds=_ROUNDS,
        refused_with=next(iter(sorted(refused)), None),
        seconds_between_the_headers=max(apart, default=None),
        seconds_ahead_of_this_machine=round(apart_here[-1]) if apart_here else None,
    )


@probe(
    22,
    group="storage",
    asks="Is `Content-MD5` stored, and kept by a rename? Does a rename change the ETag?",
    assumes="Stored and kept; the ETag changes.",
    source='OneLake parity, "Azure Storage REST operations", which does not name it',
    rests_on="landing_zone/onelake/storage.py::OneLakeFile",
    otherwise="If it is not kept, let `_move` compare the sizes alone after a lost answer.",
)
def digests_and_etags(place: Place) -> Saw:
    blobs, digest = place.azure_blobs(), md5(b"digest", usedforsecurity=False).digest()
    before, after = f"{FOLDER}/before", f"{FOLDER}/after"
    settings = ContentSettings(content_md5=bytearray(digest))
    blobs.upload_blob(place.full(before), b"digest", overwrite=True, content_settings=settings)
    found = blobs.get_blob_client(place.full(before)).get_blob_properties()
    _rename(place, before, after)
    renamed = blobs.get_blob_client(place.full(after)).get_blob_properties()
    stored, kept = (
        bytes(each.content_settings.content_md5 or b"") == digest for each in (found, renamed)
    )
    return saw(stored and kept, stored=stored, kept=kept, ETag_changes=found.etag != renamed.etag)


@probe(
    23,
    group="storage",
    asks="Is a recursive listing complete, and how deep is the prefix of its names if the path "
    "has ids?",
    assumes="Complete; a name begins with the item, as in the path.",
    source='OneLake parity, "Listing"; a publisher reports listings of the first level only',
    rests_on="landing_zone/onelake/storage.py::_list",
    otherwise="Nothing to change: `_list` lists folders without content on their own, and knows "
    "the depth.",
)
def recursive_listing(place: Place) -> Saw:
    deep = [f"{FOLDER}/deep/{'/'.join('abcd'[:n])}/file" for n in range(1, 5)]
    for path in deep:
        place.storage.write(path, b"x")
    listed = [p.name for p in place.azure_files().get_paths(place.full(FOLDER), recursive=True)]
    ends = [path.removeprefix("_scratchPad/") for path in deep]
    found = sum(any(name.endswith(end) for name in listed) for end in ends)
    names = [name for name in listed if name.endswith(ends[0])]
    prefix = names[0].removesuffix(f"/{deep[0]}") if names else ""
    whole = place.storage.at_once(FOLDER)
    with_ours = sum(whole.read(path) == b"x" for path in deep)
    return saw(
        found == len(deep) and prefix.count("/") == 2,
        files_listed=found,
        files=len(deep),
        files_the_adapter_finds=with_ours,
        depth_of_the_prefix=prefix.count("/") + 1 if prefix else 0,
        prefix_has_ids=place.id in prefix,
    )


def readable(place: Place, folder: str, name: str) -> bytes | str:
    """Read a file beside the landing zone; the error if that is refused."""
    path = f"{place.id}/{folder}/{name}"
    try:
        return bytes(place.azure_blobs().get_blob_client(path).download_blob().readall())
    except AzureError as error:
        return str(getattr(error, "message", error))
