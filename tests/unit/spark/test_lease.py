"""What lies in the place of a keeper's record, or listens at its port, is input."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from dbt.adapters.openmirroring.spark.embedded.lease import stop_spark, take

RECORDS = ["", "null", "[]", "{}", '{"port": "x", "secret": 1, "folder": []}', "\x00"]


@pytest.mark.parametrize("record", RECORDS)
def test_a_record_without_sense_names_no_keeper(tmp_path: Path, record: str) -> None:
    (tmp_path / "keeper.json").write_text(record)

    assert stop_spark(tmp_path) == "No embedded Spark is ready"


@pytest.mark.parametrize("answer", [b"HTTP/1.1 400 Bad Request\r\n", b"7\n", b"[1]\n", b"\xff\n"])
def test_another_program_at_the_port_of_a_keeper_that_was_killed_is_none(
    tmp_path: Path, answer: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path.stat()
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        given = {"port": stranger.getsockname()[1], "folder": [folder.st_dev, folder.st_ino]}
        (tmp_path / "keeper.json").write_text(json.dumps({**given, "secret": "s"}))

        def serve() -> None:
            connection, _ = stranger.accept()
            with connection:
                connection.recv(2**16)
                connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        started = SimpleNamespace()
        module = "dbt.adapters.openmirroring.spark.embedded.lease._started"
        monkeypatch.setattr(module, lambda *_: started)

        assert take(tmp_path, {}, {}, {}, tmp_path / "register") is started  # type: ignore[comparison-overlap]
        thread.join()


# a command whose code has forked a process, and which then ends without returning its lease
FORKING = """
import os, socket, sys, time
from dbt.adapters.openmirroring.spark.embedded.lease import Lease

lease = Lease(socket.create_connection(("127.0.0.1", int(sys.argv[1]))))
if child := os.fork():
    print(child, flush=True)
    os._exit(0)
os.close(1)
time.sleep(60)
"""


def test_a_keeper_notices_the_end_of_a_command_whose_fork_lives_on() -> None:
    with socket.create_server(("127.0.0.1", 0)) as keeper:
        command = [sys.executable, "-c", FORKING, str(keeper.getsockname()[1])]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
        connection, _ = keeper.accept()

    with connection:
        connection.settimeout(20)
        assert connection.recv(1) == b""
    os.kill(int(done.stdout), signal.SIGKILL)  # it is there
