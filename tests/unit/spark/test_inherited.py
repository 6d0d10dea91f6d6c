"""A JVM is used again only if the next command would pass on the same."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from dbt.adapters.openmirroring.spark.embedded import settings
from dbt.adapters.openmirroring.spark.embedded.settings import (
    can_stay_ready,
    inherited,
    variables,
)


class Place:
    """What a command passes on to Spark."""

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.path, self.monkeypatch = path, monkeypatch
        self.settings = {
            "spark.jars": f"file:{path}/a.jar,b.jar",
            "options": f"-Xlog:gc:file={path}/gc.log",
            "secret": "s3cret",
        }
        for file in ("a.jar", "gc.log", "conf/hive-site.xml", "java/release", "spark/tmp/x"):
            self.write(file, "1")
        self.setenv("HADOOP_CONF_DIR", str(path / "conf"))
        self.setenv("TERM", "xterm")

    def write(self, file: str, text: str) -> None:
        (self.path / file).parent.mkdir(parents=True, exist_ok=True)
        (self.path / file).write_text(text)

    def rebuild(self, file: str) -> None:
        """Write another build, of the same size and with the same time."""
        before = (self.path / file).stat()
        # a build takes longer than the clock of a file system needs for its next step
        while (self.path / file).stat().st_ctime_ns == before.st_ctime_ns:
            self.write(file, "2")
            os.utime(self.path / file, ns=(before.st_atime_ns, before.st_mtime_ns))

    def setenv(self, name: str, value: str = "another") -> None:
        self.monkeypatch.setenv(name, value)

    def link(self, file: str) -> None:
        """Let a link to an equal file take its place."""
        (self.path / file).replace(self.path / f"{file}.old")
        (self.path / file).symlink_to(self.path / f"{file}.old")

    def move(self, folder: str) -> None:
        (self.path / folder).rename(self.path / "moved")
        (self.path / "spark" / "tmp").mkdir(parents=True, exist_ok=True)

    def differing(self, before: dict[str, str]) -> set[str]:
        found = self.found()
        return {name for name in {*before, *found} if before.get(name) != found.get(name)}

    def found(self) -> dict[str, str]:
        return inherited(self.path / "spark", self.settings, self.path / "java", variables()[0])


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    return Place(tmp_path, monkeypatch)


OF_TASKS = ("TERM", "SHLVL", "GITHUB_STEP_SUMMARY", "AIRFLOW_CTX_DAG_RUN_ID", "DBT_TARGET")
OF_JAVA = ("PATH", "AWS_SECRET_ACCESS_KEY", "SHOP", "TZ", "TERMS")

# by name: what is done, and the name under which that differs, or nothing
CHANGES: dict[str, tuple[Callable[[Place], object], str]] = {
    **{name: (partial(Place.setenv, name=name), "") for name in OF_TASKS},
    **{name: (partial(Place.setenv, name=name), f"variable {name}") for name in OF_JAVA},
    "a log": (lambda place: place.write("gc.log", "12"), ""),
    "a jar": (lambda place: place.rebuild("a.jar"), "files of spark.jars"),
    "a link to a jar": (lambda place: place.link("a.jar"), "files of spark.jars"),
    "a setting": (lambda place: place.settings.update(secret=""), "setting secret"),
    "new file": (lambda place: place.write("conf/core-site.xml", ""), "files of HADOOP_CONF_DIR"),
    "another folder": (lambda place: place.move("spark"), "folder of Spark"),
    "another folder in it": (lambda place: place.move("spark/tmp"), "folder of Spark"),
    "another Java": (lambda place: place.write("java/release", "21.0"), "Java"),
    "certificates of Java": (lambda place: place.write("java/lib/security/cacerts", ""), "Java"),
    "working directory": (lambda place: place.monkeypatch.chdir(place.path), "working directory"),
    "permissions of new files": (lambda place: os.umask(0o007), "permissions of new files"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_java_reads_differs_and_nothing_else(place: Place, change: str) -> None:
    before = place.found()
    made, told = CHANGES[change]
    umask = os.umask(0o022)
    os.umask(umask)
    try:
        made(place)
        differing = place.differing(before)
    finally:
        os.umask(umask)

    assert differing == ({told} if told else set())
    assert "TERM" in variables()[1]


JARS, CLASS_PATH = "spark.jars", "spark.driver.extraClassPath"
METASTORE, OPTIONS = "spark.sql.hive.metastore.jars", "spark.driver.extraJavaOptions"

# a setting or a variable, its value, and a file of it
FILES = [
    (JARS, "jars/rate.jar", "jars/rate.jar"),
    (JARS, "./jars/../jars/rate.jar", "jars/rate.jar"),
    (JARS, "missing.jar, my jars/rate.jar ,other.jar", "my jars/rate.jar"),
    (JARS, "{path}/my jars/rate.jar", "my jars/rate.jar"),
    (JARS, "file:{path}/my%20jars/rate.jar,file:/missing.jar", "my jars/rate.jar"),
    (JARS, "file://{path}/jars/rate.jar#shop.jar", "jars/rate.jar"),
    (JARS, "local:{path}/jars/rate.jar", "jars/rate.jar"),
    (JARS, "jars/rate", "jars/rate"),
    (JARS, "jars/100%.jar", "jars/100%.jar"),
    (JARS, "jars/*.jar,other/*", "jars/rate.jar"),
    (JARS, "{path}/*/r?te.jar", "my jars/rate.jar"),
    (JARS, "jars/r**e.jar", "jars/rate.jar"),
    (CLASS_PATH, "missing:jars/rate.jar", "jars/rate.jar"),
    (CLASS_PATH, "other:jars/*", "jars/rate.jar"),
    (CLASS_PATH, "[jars]/*", "[jars]/rate.jar"),
    (CLASS_PATH, "my classes", "my classes/com/shop/Rate.class"),
    (CLASS_PATH, "a,b/classes:c#/classes", "a,b/classes/Rate.class"),
    (CLASS_PATH, "a,b/classes:c#/classes", "c#/classes/META-INF/services/Rate"),
    ("spark.driver.defaultExtraClassPath", "classes", "classes/Rate.class"),
    ("spark.executor.extraClassPath", "{path}/classes", "classes/Rate.class"),
    ("spark.driver.extraLibraryPath", "native", "native/librate.so"),
    (METASTORE, "{path}/hive/*:{path}/hadoop/*", "hadoop/hive.jar"),
    (f"{METASTORE}.path", "file://{path}/hive/*.jar", "hive/hive.jar"),
    ("spark.hadoop.hive.aux.jars.path", "file://{path}/hive", "hive/hive.jar"),
    ("spark.submit.pyFiles", "lib/rate.zip#shop", "lib/rate.zip"),
    ("spark.jars.ivySettings", "ivy/settings.xml", "ivy/settings.xml"),
    ("spark.kerberos.keytab", "shop.keytab", "shop.keytab"),
    (OPTIONS, "'-Dlog4j2.configurationFile=my conf/log.xml' -Dx=y", "my conf/log.xml"),
    (OPTIONS, "-javaagent:jars/agent.jar=8080:conf/agent.yaml", "jars/agent.jar"),
    (OPTIONS, "-javaagent:jars/agent.jar=8080:conf/agent.yaml", "conf/agent.yaml"),
    (OPTIONS, "-Dit=isn't -Djavax.net.ssl.trustStore=conf/cacerts", "conf/cacerts"),
    ("JAVA_TOOL_OPTIONS", "-Xbootclasspath/a:{path}/jars/rate.jar", "jars/rate.jar"),
    ("SPARK_CONF_DIR", "my conf", "my conf/hive-site.xml"),
    ("SPARK_DIST_CLASSPATH", "{path}/hadoop/etc:{path}/hadoop/*", "hadoop/etc/core-site.xml"),
    ("YARN_CONF_DIR", "other:yarn", "yarn/yarn-site.xml"),
    ("HIVE_HOME", "hive", "hive/conf/hive-site.xml"),
    ("SPARK_HOME", "{path}/opt/spark", "opt/spark/jars/spark-core.jar"),
    ("SPARK_HOME", "{path}/opt/spark", "opt/spark/conf/log4j2.properties"),
    ("PYSPARK_SUBMIT_ARGS", "--jars 'my jars/*' pyspark-shell", "my jars/rate.jar"),
    ("PYSPARK_SUBMIT_ARGS", "--driver-class-path=classes pyspark-shell", "classes/Rate.class"),
    ("PYSPARK_SUBMIT_ARGS", f"--conf {CLASS_PATH}=classes pyspark-shell", "classes/Rate.class"),
    # as if by a text editor in the file of the installation
    ("spark-defaults.conf", f"# jars\n{JARS}   a.jar,\\\n  jars/rate\nx y", "jars/rate"),
    ("spark-defaults.conf", f"  {CLASS_PATH} = my\\ classes", "my classes/Rate.class"),
    ("spark-defaults.conf", f"{CLASS_PATH}:classes", "classes/Rate.class"),
]


@pytest.mark.parametrize(("name", "value", "file"), FILES)
def test_a_file_that_java_reads_only_once_differs_when_it_is_built_anew_added_or_removed(
    place: Place, name: str, value: str, file: str
) -> None:
    value = value.format(path=place.path)
    place.monkeypatch.chdir(place.path)
    place.write(file, "1")
    if name == "spark-defaults.conf":
        place.setenv("SPARK_CONF_DIR", str(place.path / "installation"))
        place.write(f"installation/{name}", value)
    elif name.startswith("spark."):
        place.settings[name] = value
    else:
        place.setenv(name, value)

    changes: list[Callable[[], object]] = [
        partial(place.rebuild, file),
        (place.path / file).unlink,
        partial(place.write, file, "3"),
    ]
    for change in changes:
        before = place.found()
        assert place.differing(before) == set()
        change()
        assert place.differing(before)


def test_files_that_change_all_the_time_do_not_differ(place: Place) -> None:
    uri = f"jdbc:sqlite:{place.path}/shop.conf/catalog.db"
    place.settings["spark.sql.catalog.shop.uri"] = uri
    place.settings["spark.sql.warehouse.dir"] = f"{place.path}/warehouse"
    for file in ("shop.conf/catalog.db", "warehouse/orders/a.parquet"):
        place.write(file, "1")
    before = place.found()

    place.rebuild("shop.conf/catalog.db")
    place.write("warehouse/orders/b.parquet", "1")

    assert place.differing(before) == set()


@pytest.mark.parametrize("module", ["keeper.py", "jvm.py"])
def test_another_build_of_what_has_started_the_jvm_differs(place: Place, module: str) -> None:
    place.write("package/keeper.py", "1")
    place.write("package/jvm.py", "1")
    place.monkeypatch.setattr(settings, "__file__", str(place.path / "package" / "settings.py"))
    before = place.found()

    place.rebuild(f"package/{module}")

    assert place.differing(before) == {"dbt-openmirroring"}


def test_a_data_source_in_python_that_is_installed_differs(place: Place) -> None:
    place.monkeypatch.syspath_prepend(place.path / "packages")
    before = place.found()

    place.write("packages/pyspark_shop/__init__.py", "")

    assert place.differing(before) == {"data sources in Python"}


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        (JARS, "jars/rate.jar,file:/jars/*.jar, local:/jars/rate.jar", True),
        (JARS, "jars/rate.jar, https://shop.example/rate.jar", False),
        (JARS, "s3a://shop/rate.jar", False),
        (JARS, "ivy://shop:rate:1.0", False),
        (f"{JARS}.packages", "shop:rate:1.0,shop:stock:1.0", True),
        (f"{JARS}.packages", "shop:rate:1.0-SNAPSHOT, shop:stock:1.0", False),
        (f"{JARS}.packages", "shop:rate:latest.release", False),
        (f"{JARS}.packages", "shop:rate:1.+,shop:stock:1.0", False),
        ("spark.sql.warehouse.dir", "s3a://shop/warehouse", True),
    ],
)
def test_a_java_whose_jars_may_be_replaced_unnoticed_does_not_stay_ready(
    name: str, value: str, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert can_stay_ready({name: value}) is expected

    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", f"--conf '{name}={value}' pyspark-shell")
    assert can_stay_ready({}) is expected


def test_no_value_is_passed_on_that_could_be_a_secret(place: Place) -> None:
    assert not [value for value in place.found().values() if "s3cret" in value]
