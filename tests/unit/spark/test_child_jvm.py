"""The JVM of the embedded Spark on Windows. All but what only Windows has runs here too."""

from __future__ import annotations

import errno
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from dbt.adapters.exceptions.connection import FailedToConnectError
from py4j.protocol import Py4JJavaError

from dbt.adapters.openmirroring.spark.embedded import windows
from dbt.adapters.openmirroring.spark.embedded.place import tie
from dbt.adapters.openmirroring.spark.embedded.settings import (
    defaults,
    find_java_home,
    variables,
)
from dbt.adapters.openmirroring.spark.embedded.start import SparkSetup

# what Spark's launcher prints
TOLD = "\0\r\nC:/jdk/bin/java\0-cp\0a;b c\0--add-modules=jdk.incubator.vector\0-Dx=\xfc y\0Main\0"


@pytest.fixture
def on_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("my shöp") / ".spark"
    (home / "tmp").mkdir(parents=True)
    return home


@pytest.fixture(scope="module")
def child(home: Path) -> Iterator[windows.ChildJvm]:
    """A JVM in a folder with a blank and an umlaut."""
    settings = {**windows.SETTINGS, **defaults(home)}
    environment = {**variables()[0], "JAVA_HOME": str(find_java_home(home / "java"))}
    child = windows.take(home, settings, environment)
    windows.do_without_programs(child.gateway.jvm, home)
    yield child
    child.give_back(0)
    assert child.has_ended(0)


@pytest.fixture
def files(child: windows.ChildJvm) -> Any:
    """Hadoop's file system for local files, as Spark gets it."""
    jvm = child.gateway.jvm
    conf = jvm.org.apache.hadoop.conf.Configuration()
    conf.set("fs.file.impl", windows.SETTINGS["spark.hadoop.fs.file.impl"])
    return jvm.org.apache.hadoop.fs.FileSystem.newInstanceLocal(conf)


@pytest.fixture
def path(child: windows.ChildJvm) -> Any:
    return lambda path: child.gateway.jvm.org.apache.hadoop.fs.Path(str(path))


def test_hadoop_lists_creates_renames_and_deletes_without_its_programs(
    files: Any, path: Any, tmp_path: Path
) -> None:
    files.create(path(tmp_path / "a ü" / "x")).close()
    files.rename(path(tmp_path / "a ü"), path(tmp_path / "b"))

    (found,) = files.listStatus(path(tmp_path / "b"))

    assert files.getRaw().getClass().getName() == "openmirroring.LocalFiles$Raw"
    assert found.getPath().getName() == "x"
    assert [found.getOwner(), str(found.getPermission())] == ["", "rw-rw-rw-"]
    assert files.delete(path(tmp_path / "b"), True)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_is_renamed_once_nothing_is_in_its_way(
    files: Any, path: Any, tmp_path: Path
) -> None:
    (tmp_path / "orders").mkdir()
    (tmp_path / "new").write_text("as Windows, this refuses the folder its name")
    other = threading.Timer(0.3, (tmp_path / "new").unlink)
    other.start()

    assert files.rename(path(tmp_path / "orders"), path(tmp_path / "new"))

    other.join()
    assert [each.name for each in tmp_path.iterdir()] == ["new"]


def test_a_folder_that_cannot_be_renamed_stays_whole(
    files: Any, path: Any, tmp_path: Path
) -> None:
    """Hadoop's own class copies it, and deletes as much of it as it can."""
    for name in ("orders/1", "orders/2", "new/3"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)

    with pytest.raises(Py4JJavaError, match="another program has one of its files open"):
        files.rename(path(tmp_path / "orders"), path(tmp_path / "new"))

    left = {str(each.relative_to(tmp_path)) for each in tmp_path.rglob("*") if each.is_file()}
    assert left == {"orders/1", "orders/2", "new/3"}


def test_a_user_has_no_groups(child: windows.ChildJvm) -> None:
    users = child.gateway.jvm.org.apache.hadoop.security.UserGroupInformation

    assert list(users.getCurrentUser().getGroupNames()) == []


def test_nobody_else_uses_the_folder_meanwhile(child: windows.ChildJvm, home: Path) -> None:
    assert child.jvm
    assert not windows.ChildJvm(home).has_locked()


def test_the_command_of_the_jvm_has_our_classes_and_no_module_that_may_lack(
    tmp_path: Path,
) -> None:
    command = windows.java_command(TOLD, tmp_path)

    class_path = f"{tmp_path}{os.pathsep}a;b c"
    assert command == ["C:/jdk/bin/java", "-cp", class_path, "-Dx=\xfc y", "Main"]


def test_options_that_the_launcher_refuses_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="refused the options"):
        windows.java_command("", tmp_path)


def test_a_folder_on_another_machine_is_refused_with_the_setting_for_another(
    tmp_path: Path,
) -> None:
    with pytest.raises(FailedToConnectError, match=r"another machine. Set `spark_folder`"):
        windows.check_folder(Path("//server/shop/.spark"))

    windows.check_folder(SparkSetup(Path("//server/shop"), {}, str(tmp_path)).home)


def test_the_settings_have_slashes_and_what_makes_hadoop_do_without_programs(
    on_windows: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(windows, "physical_memory", lambda: 8 * 2**30)

    settings = defaults(Path("C:/my shop/.spark"))

    assert settings["spark.sql.warehouse.dir"] == "C:/my shop/.spark/warehouse"
    assert settings.items() >= windows.SETTINGS.items()


def test_the_runtime_from_pypi_needs_no_wrapper(
    on_windows: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr("shutil.which", lambda _: None)

    assert (find_java_home(tmp_path) / "release").is_file()
    assert list(tmp_path.iterdir()) == []


def test_a_record_that_a_virus_scanner_holds_is_replaced_when_it_lets_go(
    on_windows: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    replace, refusals = Path.replace, [PermissionError(errno.EACCES, "in use")] * 3
    (tmp_path / "metastore_db").mkdir()

    def refused_at_first(path: Path, target: Path) -> Path:
        if refusals:
            raise refusals.pop()
        return replace(path, target)

    with patch("time.sleep"), patch.object(Path, "replace", refused_at_first):
        tie(tmp_path)

    assert (tmp_path / "metastore_db" / "openmirroring.json").exists()
