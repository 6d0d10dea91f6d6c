"""A landing zone is one place, however the profile of each person spells its address."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from dbt.adapters.openmirroring.destination.destination import (
    Destination,
    Target,
    is_another_zone,
)
from dbt.adapters.openmirroring.landing_zone.errors import (
    ConcurrentPublicationError,
    SnapshotMismatchError,
)
from tests.unit.node.world import AFTER, BEFORE, ZONE, World, published_world

FOLDER = "Files/LandingZone"
HOST = "onelake.dfs.fabric.microsoft.com"
WORKSPACE = "6e335e92-a2a2-4b5a-970a-bd6a89fbb765"
PRIVATE = "6e335e92a2a24b5a970abd6a89fbb765.z6e.dfs.fabric.microsoft.com"
ITEM = "cfafbeb1-8037-4d0c-896e-a46fb27ff229"
OTHERS = ((1, "a"), (5, "of somebody else"))

# Windows makes links for users with a permission only, and Wine says that it has made them
has_links = pytest.mark.skipif(sys.platform == "win32", reason="links need a permission there")
LINKED = (
    ["{folder}/link", "{folder}/link/../LandingZone", "../link/"]
    if sys.platform != "win32"
    else []
)

# the addresses of three places: by names, by GUIDs, and a folder
SPELLINGS = {
    "names": [
        f"https://{HOST}/shop/m.MirroredDatabase/{FOLDER}",
        f"https://{HOST}/shop/m.MirroredDatabase/{FOLDER}/",
        f"https://{HOST}//shop/m.MirroredDatabase/{FOLDER}",
        f"HTTPS://{HOST.upper()}/shop/m.MirroredDatabase/{FOLDER}",
        f"https://westeurope-{HOST}/shop/m.MirroredDatabase/{FOLDER}",
        f"https://{HOST}/Shop/M.mirroreddatabase/{FOLDER}",
        f"https://{HOST}/sh%6fp/m%2EMirroredDatabase/Files/Landing%5Aone",
        f"abfss://shop@{HOST}/m.MirroredDatabase/{FOLDER}",
        f"ABFSS://shop@{HOST.title()}/m.MirroredDatabase/{FOLDER}/",
    ],
    "guids": [
        f"https://{HOST}/{WORKSPACE}/{ITEM}/{FOLDER}",
        f"https://{HOST}/{WORKSPACE.upper()}/{ITEM.upper()}/{FOLDER}/",
        f"https://{PRIVATE}/{WORKSPACE}/{ITEM}/{FOLDER}",
        f"abfss://{WORKSPACE}@{HOST}/{ITEM}/{FOLDER}",
    ],
    "folder": [
        f"{{folder}}/{ZONE}",
        f"{{folder}}/{ZONE}/",
        f"{{folder}}/./{ZONE}",
        f"{{folder}}/project/../{ZONE}",
        f"../{ZONE}",
        *LINKED,
    ],
}


def spellings(kind: str, folder: Path) -> list[str]:
    """Return the addresses of a place; relative ones start at the folder `project`."""
    (folder / "project").mkdir(parents=True)
    (folder / ZONE).mkdir(parents=True, exist_ok=True)
    if LINKED:
        (folder / "link").symlink_to(folder / ZONE)
    return [each.format(folder=folder) for each in SPELLINGS[kind]]


def destination(folder: Path, address: str) -> Destination:
    return Destination(Target(landing_zone=address), lambda: folder / "project", lambda: None)


@pytest.mark.parametrize("kind", SPELLINGS)
def test_a_landing_zone_has_one_id_however_it_is_spelled(tmp_path: Path, kind: str) -> None:
    ids = {destination(tmp_path, each).zone_id for each in spellings(kind, tmp_path)}

    assert len(ids) == 1


def test_two_landing_zones_have_two_ids(tmp_path: Path) -> None:
    places = [
        *(
            f"https://{HOST}/{path}/{FOLDER}"
            for path in ("a/m.MirroredDatabase", "b/m.MirroredDatabase")
        ),
        f"https://{HOST}/a/n.MirroredDatabase/{FOLDER}",
        "../zone",
        "../zone2",
    ]
    ids = [destination(tmp_path, place).zone_id for place in places]

    for id_ in ids:
        assert [is_another_zone(id_, other) for other in ids].count(False) == 1


def test_names_may_be_those_of_guids(tmp_path: Path) -> None:
    names, guids, folder = (
        destination(tmp_path / kind, spellings(kind, tmp_path / kind)[0]).zone_id
        for kind in SPELLINGS
    )

    assert not is_another_zone(names, guids)
    assert not is_another_zone(guids, names)
    assert is_another_zone(names, folder)
    assert is_another_zone(guids, folder)


def publish_as_somebody_else(folder: Path, **config: Any) -> World:
    """Let a person with a Spark of its own load the table anew."""
    other = World(folder, **config)
    other.select(*OTHERS)
    other.run(full_refresh=True)
    if config.get("publish"):
        other.publish_held()
    assert other.mirrored == list(OTHERS)
    return other


@pytest.mark.parametrize("number", range(len(SPELLINGS["folder"])))
def test_a_table_that_somebody_else_has_published_is_refused_under_each_spelling(
    tmp_path: Path, number: int
) -> None:
    world = published_world(tmp_path)
    other = publish_as_somebody_else(tmp_path)
    world.address = spellings("folder", tmp_path)[number].removeprefix("../")

    with pytest.raises(SnapshotMismatchError, match="Somebody else has published this table"):
        world.run()

    assert (other.mirrored, world.rows) == (list(OTHERS), list(BEFORE))


@pytest.mark.parametrize("config", [{}, {"publish": "on_request"}], ids=["published", "held"])
def test_a_table_that_somebody_else_has_published_is_refused_where_its_landing_zone_has_moved(
    tmp_path: Path, config: dict[str, Any]
) -> None:
    """Its builds are in the history of the journal."""
    world = published_world(tmp_path / "mounted here", **config)
    publish_as_somebody_else(tmp_path / "mounted here", **config)
    moved = world.copy(tmp_path / "mounted there")
    moved.select(*AFTER)

    with pytest.raises(SnapshotMismatchError, match="Somebody else has published this table"):
        moved.run()

    assert (moved.mirrored, moved.rows) == (list(OTHERS), list(BEFORE))


def test_a_table_that_was_published_to_another_landing_zone_meanwhile_is_rebuilt(
    tmp_path: Path,
) -> None:
    world = published_world(tmp_path)
    here, world.address = world.address, str(tmp_path / "elsewhere")
    world.run()
    assert world.mirrored == list(BEFORE)
    world.address = here

    response = world.run()

    assert response.reason == "was published to another landing zone meanwhile"
    world.assert_right(AFTER)


@has_links
def test_a_table_is_held_by_one_run_under_all_spellings(tmp_path: Path) -> None:
    world = published_world(tmp_path)
    world.address = str(tmp_path / "link")
    (tmp_path / "link").symlink_to(tmp_path / ZONE)

    with (
        world.zone.lock("_scratchPad/shop.orders"),
        pytest.raises(ConcurrentPublicationError, match="Another run holds"),
    ):
        world.run()

    assert world.mirrored == list(BEFORE)
