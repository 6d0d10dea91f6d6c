"""A Spark server: one process that answers Spark Connect, and Thrift or Livy.

All have the same tables.
"""

from __future__ import annotations

import os
import random
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyspark

from tests import livy_server

_START_SECONDS = 120


class SparkServer:
    """Started in a process of its own; its files are in a folder.

    Args:
        folder: for its warehouse, metastore and log
        settings: of Spark
        with_livy: answer Livy, and not Thrift
    """

    def __init__(self, folder: Path, settings: Mapping[str, str], with_livy: bool = False) -> None:
        self.connect_port, self.port = _free_port(), _free_port()
        defaults = {
            "spark.master": "local[2]",
            "spark.driver.memory": "2g",
            "spark.driver.host": "localhost",
            "spark.driver.extraJavaOptions": f"-Dderby.stream.error.file={folder}/derby.log",
            "spark.hadoop.hive.exec.scratchdir": f"{folder}/hive",
            # lets Spark keep comments that are longer than the metastore's 256 characters
            "spark.hadoop.hive.metastore.disallow.incompatible.col.type.changes": "false",
            "spark.hadoop.javax.jdo.option.ConnectionURL": (
                "jdbc:derby:memory:metastore;create=true"
            ),
            "spark.local.dir": f"{folder}/tmp",
            "spark.sql.legacy.createHiveTableByDefault": "false",
            "spark.sql.session.timeZone": "UTC",
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.warehouse.dir": f"{folder}/warehouse",
            "spark.ui.enabled": "false",
            "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
            "spark.connect.grpc.binding.address": "127.0.0.1",
            "spark.connect.grpc.binding.port": str(self.connect_port),
        }
        submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
        command = [str(submit)]
        for key, value in {**defaults, **settings}.items():
            command += ["--conf", f"{key}={value}"]
        if with_livy:
            command += [str(livy_server.__file__), str(self.port)]
        else:
            command += ["--class", "org.apache.spark.sql.hive.thriftserver.HiveThriftServer2"]
            command += ["spark-internal"]
            command += ["--hiveconf", f"hive.server2.thrift.port={self.port}"]
            command += ["--hiveconf", "hive.server2.thrift.bind.host=127.0.0.1"]
        self.log = folder / "server.log"
        environment = {**os.environ, "SPARK_HOME": str(submit.parents[1]), "TZ": "UTC"}
        environment["PYSPARK_PYTHON"] = sys.executable
        if with_livy:  # as in Apache Livy, where a Python thread has no thread of the JVM
            environment["PYSPARK_PIN_THREAD"] = "false"
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                command, cwd=folder, env=environment, stdout=log, stderr=log
            )
        for port in (self.connect_port, self.port):
            self._wait_for(port)

    @property
    def url(self) -> str:
        """For Spark Connect."""
        return f"sc://127.0.0.1:{self.connect_port}"

    def target(self, method: str) -> dict[str, Any]:
        """Return the settings of a profile that reaches it."""
        if method == "connect":
            return {"method": method, "host": self.url}
        if method == "livy":
            return {"method": method, "host": f"http://127.0.0.1:{self.port}"}
        return {"method": method, "host": "127.0.0.1", "port": self.port, "user": "dbt"}

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait()

    def _wait_for(self, port: int) -> None:
        end = time.monotonic() + _START_SECONDS
        while time.monotonic() < end and self._process.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
            except OSError:
                time.sleep(0.2)
            else:
                return
        self.stop()
        raise RuntimeError(f"The Spark server did not start:\n{self.log.read_text()[-5000:]}")


def _free_port() -> int:
    """One that no other server is given by chance, as Spark gives several to itself."""
    while True:
        port = random.randrange(20000, 30000)
        with suppress(OSError), socket.socket() as found:
            found.bind(("127.0.0.1", port))
            return port
