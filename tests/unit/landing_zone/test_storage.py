"""The promises of every storage (`Storage`)."""

import errno
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from dbt.adapters.openmirroring.landing_zone.errors import (
    ConcurrentPublicationError,
    LandingZoneUnavailableError,
    PathExistsError,
)
from dbt.adapters.openmirroring.landing_zone.local.storage import LocalStorage
from dbt.adapters.openmirroring.landing_zone.storage import Storage

OF_POSIX = pytest.mark.skipif(os.name == "nt", reason="calls and permissions that Windows lacks")


def names(storage: Storage, folder: str) -> list[str]:
    return [entry.name for entry in storage.list(folder)]


def test_a_written_file_is_there_with_its_content_and_nothing_beside_it(storage: Storage) -> None:
    assert storage.list("a/b") == []
    assert storage.read("a/b/c") is None

    storage.write("a/b/c", b"one")
    storage.write("a/b/c", b"two!")

    assert storage.read("a/b/c") == b"two!"
    (entry,) = storage.list("a/b")
    assert (entry.name, entry.size, entry.is_folder) == ("c", 4, False)


def test_a_file_is_created_once(storage: Storage) -> None:
    storage.create("a", b"first")

    with pytest.raises(PathExistsError):
        storage.create("a", b"second")

    assert storage.read("a") == b"first"
    assert names(storage, "") == ["a"]


def test_a_rename_moves_a_file_into_a_new_folder(storage: Storage) -> None:
    storage.write("a/b", b"1")

    storage.rename("a/b", "c/d/e")

    assert storage.read("c/d/e") == b"1"
    assert storage.list("a") == []


def test_a_rename_never_replaces_a_file(storage: Storage) -> None:
    storage.write("a", b"new")
    storage.write("b", b"old")

    with pytest.raises(PathExistsError):
        storage.rename("a", "b")

    assert (storage.read("a"), storage.read("b")) == (b"new", b"old")


@OF_POSIX
def test_without_hard_links_a_rename_never_replaces_a_file_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOTSUP, "Operation not supported")

    monkeypatch.setattr("os.link", refuse)
    storage = LocalStorage(tmp_path)
    storage.write("a", b"new")
    storage.write("b", b"old")

    with pytest.raises(PathExistsError):
        storage.rename("a", "b")
    storage.rename("a", "c")

    assert (storage.read("b"), storage.read("c")) == (b"old", b"new")
    assert names(storage, "") == ["b", "c"]


def test_only_one_of_many_renames_to_one_name_wins(storage: Storage) -> None:
    writers = 8
    for i in range(writers):
        storage.write(f"source/{i}", str(i).encode())
    lost: list[int] = []
    start = threading.Barrier(writers)

    def rename(i: int) -> None:
        start.wait()
        try:
            storage.rename(f"source/{i}", "target")
        except PathExistsError:
            lost.append(i)

    run_together([lambda i=i: rename(i) for i in range(writers)])  # type: ignore[misc]

    assert len(lost) == writers - 1
    (winner,) = set(range(writers)) - set(lost)
    assert storage.read("target") == str(winner).encode()


@pytest.mark.parametrize("storage", ["local"], indirect=True)
def test_a_touched_file_is_later_than_another_and_stays_so_when_it_is_renamed(
    storage: Storage,
) -> None:
    before = time.time_ns()
    times = [2 * 10**18]
    for name in ("third", "first", "second"):
        storage.write(f"staged/{name}", b"")
        assert before <= storage.touch(f"staged/{name}", 0) <= time.time_ns(), (
            "now, if it is later"
        )
        times.append(storage.touch(f"staged/{name}", times[-1]))
        storage.rename(f"staged/{name}", f"table/{name}")

    assert times == sorted(set(times)), "each is later than the one before"
    found = {entry.name: entry.modified for entry in storage.list("table")}
    assert found == dict(zip(("third", "first", "second"), times[1:], strict=True))


@pytest.mark.parametrize("storage", ["onelake"], indirect=True)
def test_onelake_cannot_give_a_file_its_time_and_says_so(storage: Storage) -> None:
    storage.write("a", b"")

    with pytest.raises(LandingZoneUnavailableError, match="file_detection: sequential"):
        storage.touch("a", 0)


def test_a_folder_is_deleted_with_all_that_is_in_it(storage: Storage) -> None:
    storage.write("a/b/c", b"")
    storage.write("a/d", b"")
    storage.write("e", b"")

    storage.delete("a")
    storage.delete("e")
    storage.delete("was never there")

    assert storage.list("") == []


def test_a_folder_is_deleted_while_somebody_else_deletes_and_writes_in_it(
    storage: Storage,
) -> None:
    for i in range(200):
        storage.write(f"a/{i}", b"")
    start = threading.Barrier(3)

    def clean() -> None:
        start.wait()
        for i in range(200):
            storage.delete(f"a/{i}")

    def publish() -> None:
        start.wait()
        for i in range(50):
            with suppress(LandingZoneUnavailableError):  # its folder has just gone
                storage.write(f"a/new/{i}", b"")

    def drop() -> None:
        start.wait()
        storage.delete("a")

    run_together([clean, publish, drop])
    storage.delete("a")

    assert storage.list("a") == []


@OF_POSIX
@pytest.mark.parametrize("refusals", [3, 10**6])
def test_a_folder_that_is_in_use_is_deleted_when_it_is_free_or_is_an_error_after_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refusals: int
) -> None:
    storage = LocalStorage(tmp_path)
    storage.write("a/b", b"")
    waited: list[float] = []
    rmdir = Path.rmdir

    def remove(path: Path) -> None:
        if len(waited) < refusals:  # as a folder that something is mounted in
            raise OSError(errno.EBUSY, "Device or resource busy")
        rmdir(path)

    monkeypatch.setattr("time.sleep", waited.append)
    monkeypatch.setattr(Path, "rmdir", remove)
    if refusals == 3:
        storage.delete("a")
    else:
        with pytest.raises(LandingZoneUnavailableError, match="busy"):
            storage.delete("a")

    assert names(storage, "") == ([] if refusals == 3 else ["a"])
    assert waited == sorted(waited)


@OF_POSIX
def test_a_change_that_permissions_forbid_is_reported_and_not_made() -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        storage = LocalStorage(Path(folder))
        storage.write("a/b", b"1")
        (Path(folder) / "a").chmod(0o555)
        attempts: list[Callable[[], None]] = [
            lambda: storage.write("a/b", b"2"),
            lambda: storage.create("a/c", b""),
            lambda: storage.rename("a/b", "a/c"),
            lambda: storage.delete("a"),
            lambda: storage.lock("a/d").__enter__(),
        ]

        with unprivileged():
            for attempt in attempts:
                with pytest.raises(
                    LandingZoneUnavailableError, match=r"Permission denied.*may"
                ) as refused:
                    attempt()

        assert f"Cannot lock {folder}/a/d: " in str(refused.value)
        assert storage.read("a/b") == b"1"
        assert names(storage, "a") == ["b"]
        (Path(folder) / "a").chmod(0o755)


@contextmanager
def unprivileged() -> Iterator[None]:
    """Run as a user to whom file permissions apply; they do not apply to root."""
    me = os.geteuid()
    if me == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(me)


def test_a_folder_is_held_by_one_and_free_again_afterwards(storage: Storage) -> None:
    with storage.lock("a/b"):
        with pytest.raises(ConcurrentPublicationError), storage.lock("a/b"):
            pass
        with storage.lock("a/c"):
            pass
    with storage.lock("a/b"):
        pass

    assert names(storage, "a") == []


@OF_POSIX
def test_a_file_that_is_gone_by_the_end_of_a_listing_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The service moves files while they are listed."""
    storage = LocalStorage(tmp_path)
    for name in ("a", "b", "c"):
        storage.write(f"table/{name}", b"1")
    iterdir = Path.iterdir

    def listed(folder: Path) -> Iterator[Path]:
        found = list(iterdir(folder))
        (folder / "b").unlink()
        yield from found

    monkeypatch.setattr(Path, "iterdir", listed)

    assert names(storage, "table") == ["a", "c"]


def test_only_one_of_many_runs_at_a_time_holds_a_folder(storage: Storage) -> None:
    inside, most = 0, 0
    guard = threading.Lock()

    def compete() -> None:
        nonlocal inside, most
        for _ in range(50):
            try:
                with storage.lock("a/b"):
                    with guard:
                        inside += 1
                        most = max(most, inside)
                    with guard:
                        inside -= 1
            except ConcurrentPublicationError:
                pass

    run_together([compete] * 4)

    assert most == 1


def test_a_landing_zone_that_cannot_be_written_says_so(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    not_a_folder = tmp_path_factory.mktemp("x") / "file"
    not_a_folder.write_text("")
    storage = LocalStorage(not_a_folder / "LandingZone")

    with pytest.raises(LandingZoneUnavailableError, match="landing_zone"):
        storage.write("a", b"")
    with pytest.raises(LandingZoneUnavailableError, match="Not a directory"):
        storage.list("a")


def run_together(tasks: list[Callable[[], None]]) -> None:
    threads = [threading.Thread(target=task) for task in tasks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
