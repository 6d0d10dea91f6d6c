"""`_partnerEvents.json`: the publisher and its source (specification, "Events file")."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, fields
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


@dataclass(frozen=True)
class Source:
    """The description of the source in the profile.

    Args:
        type: the type of the source; any text
        partner_name: the publisher; the same in all mirrored databases of an organization
        version: the version of the source
        additional_information: other values by name
    """

    type: str
    partner_name: str = "dbt-openmirroring"
    version: str | None = None
    additional_information: Mapping[str, str] | None = None

    @classmethod
    def parse(cls, options: Mapping[str, Any]) -> Source:
        """Read `source` of the profile.

        Raises:
            ProfileError: if an option is unknown, `type` is missing, or a value is not text
        """
        names = [field.name for field in fields(cls)]
        unknown = [name for name in options if name not in names]
        if unknown:
            raise ProfileError(
                f"Unknown option `source.{unknown[0]}` in profile. There are: {', '.join(names)}"
            )
        if not options.get("type"):
            raise ProfileError(
                "`source` in profile requires a `type`, e.g. SQL, Oracle, Salesforce"
            )
        information = options.get("additional_information")
        if not isinstance(information or {}, Mapping):
            raise ProfileError(
                "`source.additional_information` in profile must be a mapping of names to values"
            )
        texts = {name: _text(name, options[name]) for name in names[:3] if options.get(name)}
        details = {str(name): _text(name, value) for name, value in (information or {}).items()}
        return cls(**texts, additional_information=details or None)

    @property
    def events(self) -> dict[str, Any]:
        information = {
            "sourceType": self.type,
            "sourceVersion": self.version,
            "additionalInformation": self.additional_information,
        }
        return {
            "partnerName": self.partner_name,
            "sourceInfo": {name: value for name, value in information.items() if value},
        }


def declare_source(storage: Storage, source: Source) -> None:
    """Write `_partnerEvents.json` at the root of the landing zone, if its content differs.

    Raises:
        MirrorError: if the file names another partner
    """
    if _is_declared(storage, source):
        return
    # if another command declares it right now, the next command compares again
    with suppress(ConcurrentPublicationError), storage.lock(_LOCK):
        if not _is_declared(storage, source):
            written = json.dumps(source.events, ensure_ascii=False, indent=2)
            storage.write(PARTNER_EVENTS, written.encode())


def _is_declared(storage: Storage, source: Source) -> bool:
    content = storage.read(PARTNER_EVENTS)
    try:
        found = json.loads(content) if content else {}
        partner = found.get("partnerName", source.partner_name)
    except (ValueError, AttributeError, RecursionError):  # damaged
        return False
    if partner != source.partner_name:
        raise MirrorError(
            f"{PARTNER_EVENTS} in the landing zone names the partner {shown(partner)!r}, and "
            f"`source` in the profile {source.partner_name!r}. The name has to be the same in all "
            "mirrored databases. Nothing was changed. Set `partner_name` to it, or delete the "
            "file."
        )
    return bool(found == source.events)


def _text(name: object, value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise ProfileError(f"`source` in profile: {name} is {value!r}. It must be text.")
    return str(value)
