"""`_partnerEvents.json` tells what the profile says of the source."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from dbt_common.exceptions import DbtConfigError

from dbt.adapters.openmirroring.landing_zone.errors import MirrorError
from dbt.adapters.openmirroring.landing_zone.local.storage import LocalStorage
from dbt.adapters.openmirroring.landing_zone.source import declare_source, source_events
from dbt.adapters.openmirroring.landing_zone.storage import Storage
from tests.onelake_server import OneLakeServer

SOURCE = {
    "partner_name": "testPartner",
    "type": "SQL",
    "version": 2019,
    "additional_information": {"testKey": "testValue"},
}


def declared(storage: Storage) -> Any:
    return json.loads(storage.read("_partnerEvents.json") or b"")


@pytest.mark.parametrize(
    ("source", "events"),
    [
        (
            SOURCE,
            {
                "partnerName": "testPartner",
                "sourceInfo": {
                    "sourceType": "SQL",
                    "sourceVersion": "2019",
                    "additionalInformation": {"testKey": "testValue"},
                },
            },
        ),
        (
            {"type": "Salesforce"},
            {"partnerName": "dbt-openmirroring", "sourceInfo": {"sourceType": "Salesforce"}},
        ),
    ],
    ids=["the example of the specification", "only what is required"],
)
def test_a_source_is_declared_as_the_specification_says(
    storage: Storage, source: dict[str, Any], events: Any
) -> None:
    declare_source(storage, source_events(source))

    assert declared(storage) == events


def test_a_declaration_is_written_again_only_if_it_changes(storage: Storage) -> None:
    declare_source(storage, source_events(SOURCE))
    storage.write("_partnerEvents.json", json.dumps(declared(storage)).encode())
    written = storage.read("_partnerEvents.json")

    declare_source(storage, source_events(SOURCE))
    assert storage.read("_partnerEvents.json") == written
    declare_source(storage, source_events({**SOURCE, "version": "2022"}))
    assert declared(storage)["sourceInfo"]["sourceVersion"] == "2022"


@pytest.mark.parametrize("content", [b"{", b"[]", b"", b"[" * 200_000])
def test_a_damaged_declaration_is_written_again(storage: Storage, content: bytes) -> None:
    storage.write("_partnerEvents.json", content)

    declare_source(storage, source_events(SOURCE))

    assert declared(storage)["partnerName"] == "testPartner"


def test_another_partner_is_not_written_over(storage: Storage) -> None:
    declare_source(storage, source_events(SOURCE))

    with pytest.raises(MirrorError, match=r"'testPartner'.*'me'.*same in all mirrored databases"):
        declare_source(storage, source_events({**SOURCE, "partner_name": "me"}))

    assert declared(storage)["partnerName"] == "testPartner"


def test_a_declaration_that_another_command_is_writing_is_left_to_it(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    declare_source(storage, source_events(SOURCE))
    before, read = storage.read("_partnerEvents.json"), storage.read

    with ExitStack() as other:

        def overtaken(path: str) -> bytes | None:
            """Another command begins to write after this one has read."""
            other.enter_context(storage.lock("_scratchPad/_source"))
            return read(path)

        monkeypatch.setattr(storage, "read", overtaken)
        declare_source(storage, source_events({**SOURCE, "version": "2022"}))

    assert read("_partnerEvents.json") == before


def test_commands_that_write_a_declaration_at_once_leave_it_whole(tmp_path: Path) -> None:
    # Windows replaces no file while somebody reads it
    count = 8 if os.name == "nt" else 60
    sources = [source_events({**SOURCE, "version": n, "type": "SQL" * n}) for n in range(1, count)]

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda source: declare_source(LocalStorage(tmp_path), source), sources))

    assert declared(LocalStorage(tmp_path)) in sources
    assert [file.name for file in tmp_path.iterdir()] == ["_partnerEvents.json"]


def test_a_source_that_is_declared_already_costs_one_request(server: OneLakeServer) -> None:
    declare_source(server.storage(), source_events(SOURCE))
    storage = server.storage()
    server.requests.clear()

    declare_source(storage, source_events(SOURCE))

    assert server.counts() == {"read": 1}


@pytest.mark.parametrize(
    ("options", "finding"),
    [
        ({}, "requires a `type`"),
        ({"type": "SQL", "partner": "me"}, "There are: type, partner_name, version"),
        ({"type": ["SQL"]}, "It must be text"),
        ({"type": "SQL", "additional_information": "x"}, "mapping of names"),
        ({"type": "SQL", "additional_information": {"a": {"b": 1}}}, "a is {'b': 1}"),
    ],
)
def test_a_source_that_cannot_be_declared_is_refused(options: Any, finding: str) -> None:
    with pytest.raises(DbtConfigError) as error:
        source_events(options)
    assert finding in str(error.value)
