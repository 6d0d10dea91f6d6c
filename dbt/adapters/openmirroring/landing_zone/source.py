"""`_partnerEvents.json`: the publisher and its source (specification, "Events file")."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from dbt.adapters.openmirroring.landing_zone.errors import (
    ConcurrentPublicationError,
    MirrorError,
)
from dbt.adapters.openmirroring.landing_zone.layout import SCRATCH_PAD
from dbt.adapters.openmirroring.landing_zone.storage import Storage
from dbt.adapters.openmirroring.text.errors import ProfileError
from dbt.adapters.openmirroring.text.shown import shown

PARTNER_EVENTS = "_partnerEvents.json"

# the folder that a command locks while it writes the file; no table has such a name
_LOCK = f"{SCRATCH_PAD}/_source"

# the options of `source` in the profile; `partner_name` is the publisher, the same in all mirrored
# databases of an organization
_OPTIONS = ("type", "partner_name", "version", "additional_information")


def source_events(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content of `_partnerEvents.json`.

    Args:
        options: `source` of the profile

    Raises:
        ProfileError: if an option is unknown, `type` is missing, or a value is not text
    """
    unknown = [name for name in options if name not in _OPTIONS]
    if unknown:
        raise ProfileError(
            f"Unknown option `source.{unknown[0]}` in profile. There are: {', '.join(_OPTIONS)}"
        )
    if not options.get("type"):
        raise ProfileError("`source` in profile requires a `type`, e.g. SQL, Oracle, Salesforce")
    information = options.get("additional_information") or {}
    if not isinstance(information, Mapping):
        raise ProfileError(
            "`source.additional_information` in profile must be a mapping of names to values"
        )
    texts = {name: _text(name, options[name]) for name in _OPTIONS[:3] if options.get(name)}
    about = {
        "sourceType": texts["type"],
        "sourceVersion": texts.get("version"),
        "additionalInformation": {
            str(name): _text(name, value) for name, value in information.items()
        },
    }
    return {
        "partnerName": texts.get("partner_name", "dbt-openmirroring"),
        "sourceInfo": {name: value for name, value in about.items() if value},
    }


def declare_source(storage: Storage, events: Mapping[str, Any]) -> None:
    """Write `_partnerEvents.json` at the root of the landing zone, if its content differs.

    Raises:
        MirrorError: if the file names another partner
    """
    if _is_declared(storage, events):
        return
    # if another command declares it right now, the next command compares again
    with suppress(ConcurrentPublicationError), storage.lock(_LOCK):
        if not _is_declared(storage, events):
            written = json.dumps(events, ensure_ascii=False, indent=2)
            storage.write(PARTNER_EVENTS, written.encode())


def _is_declared(storage: Storage, events: Mapping[str, Any]) -> bool:
    content = storage.read(PARTNER_EVENTS)
    try:
        found = json.loads(content) if content else {}
        partner = found.get("partnerName", events["partnerName"])
    except (ValueError, AttributeError, RecursionError):  # damaged
        return False
    if partner != events["partnerName"]:
        raise MirrorError(
            f"{PARTNER_EVENTS} in the landing zone names the partner {shown(partner)!r}, and "
            f"`source` in the profile {events['partnerName']!r}. The name has to be the same in "
            "all mirrored databases. Nothing was changed. Set `partner_name` to it, or delete "
            "the file.",
            code="OM421",
        )
    return bool(found == events)


def _text(name: object, value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise ProfileError(f"`source` in profile: {name} is {value!r}. It must be text.")
    return str(value)
