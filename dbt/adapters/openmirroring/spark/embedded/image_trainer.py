"""The program that makes an image of Spark's classes by publishing tables."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from dbt.adapters.openmirroring.spark.embedded import start as embedded_spark
from dbt.adapters.openmirroring.spark.embedded.java_image import JavaImage
from dbt.adapters.openmirroring.spark.embedded.running_commands import RunningCommands
from dbt.adapters.openmirroring.spark.embedded.submit import end_jvm

# seconds to wait until Java has written the image
_LONGEST_TRAINING = 300.0

# These models load most of the Spark classes that a publication uses. The rows of the large one
# are shuffled.
_MODELS = {
    "small": "select id, 'a' as name from range({rows})",
    "large": "select id, sha2(cast(id as string), 256) as name from range({rows} * 40000)",
    "plain": "select id, current_date() as day, array(id) as list from range({rows})",
}


def train(
    folder: Path,
    options: Sequence[str],
    java_home: Path | None = None,
    wait: Callable[[], None] = lambda: None,
) -> None:
    """Publish tables in a new JVM: an initial load, an unchanged run, and a change set.

    Args:
        folder: the folder for the dbt project, the landing zone and Spark's files
        options: Java options
        java_home: the home of the Java; that of an embedded Spark if not given
        wait: called before each step, so that it can give way to others
    """
    wait()
    # slow to import, and a second process that finds the lock taken does not need it
    from dbt.cli.main import dbtRunner

    (folder / "models").mkdir()
    target = "{type: openmirroring, schema: training, landing_zone: zone, threads: 1}"
    (folder / "profiles.yml").write_text(
        f"training: {{target: local, outputs: {{local: {target}}}}}\n"
    )
    (folder / "dbt_project.yml").write_text(
        "name: training\nversion: '1.0'\nprofile: training\nmodels: {+materialized: table}\n"
        "flags: {send_anonymous_usage_stats: false}\n"
    )
    setup = embedded_spark.SparkSetup(folder, {"spark.driver.memory": "1g"})
    spark = embedded_spark.start(setup, java_home, options)
    gateway = spark.sparkContext._gateway
    places = ["--project-dir", str(folder), "--profiles-dir", str(folder)]
    try:
        for rows in (10, 10, 11):
            for name, sql in _MODELS.items():
                key = "{{ config(unique_key='id') }}" if name != "plain" else ""
                model = folder / "models" / f"{name}.sql"
                model.write_text(f"{key}\n{sql.format(rows=rows)}\n")
                wait()
                dbtRunner().invoke(["run", "--quiet", "--select", name, *places])
        wait()
    except BaseException:
        end_jvm(gateway, 0)
        raise
    spark.stop()
    end_jvm(gateway, _LONGEST_TRAINING)


def main(gives_way: bool) -> None:
    """Make the image. The arguments are the Java home and the folder of the images.

    Args:
        gives_way: whether to let the commands of users go first; otherwise a user waits for it
    """
    java_home, images = map(Path, sys.argv[1:])
    training = partial(train, java_home=java_home)
    if gives_way:
        training = partial(training, wait=RunningCommands(images).wait)
    JavaImage(java_home, images).make(training, waits=not gives_way)
