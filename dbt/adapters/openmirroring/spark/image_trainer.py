"""The program that makes an image of Spark's classes: it publishes small tables."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from dbt.adapters.openmirroring.spark import embedded as embedded_spark
from dbt.adapters.openmirroring.spark.java_image import JavaImage
from dbt.adapters.openmirroring.spark.submit import end_jvm

# seconds that Java has to write the image
_PATIENCE = 300.0

# these find most of Spark's classes for a publication
_MODELS = {
    "small": "select id, 'a' as name from range({rows})",
    "large": "select id, sha2(cast(id as string), 256) as name from range({rows})",
    "plain": "select id, current_date() as day, array(id) as list from range({rows})",
}


def train(folder: Path, options: Sequence[str]) -> None:
    """Publish small tables with a Java of its own: a load, a change set, and nothing changed.

    Args:
        folder: of the dbt project, the landing zone and Spark's files
        options: of Java
    """
    # takes a moment, and of two processes at once only one trains
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
    spark = embedded_spark.start(folder, {"spark.driver.memory": "1g"}, java_options=options)
    gateway = spark.sparkContext._gateway
    places = ["--project-dir", str(folder), "--profiles-dir", str(folder)]
    for rows in (10, 10, 11):
        for name, sql in _MODELS.items():
            key = "{{ config(unique_key='id') }}" if name != "plain" else ""
            (folder / "models" / f"{name}.sql").write_text(f"{key}\n{sql.format(rows=rows)}\n")
        dbtRunner().invoke(["run", "--quiet", *places])
    spark.stop()
    end_jvm(gateway, _PATIENCE)


def main() -> None:
    """Make the image for a Java home, in a folder."""
    os.nice(19)
    JavaImage(*map(Path, sys.argv[1:])).make(train)
