"""The time of uploading staged files to OneLake, beside a plain upload by Azure's client.

Both send the same files, so many at once, to a server of the tests: over TLS, to the URL of
production, from a process of its own to another one. Prints a table in Markdown: throughput, the
ratio of the times in each round, and the memory of the process that uploads.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from pathlib import Path

import trustme
from azure.core.pipeline.transport import RequestsTransport
from azure.storage.filedatalake import DataLakeServiceClient

from dbt.adapters.openmirroring.landing_zone.onelake import storage as onelake
from dbt.adapters.openmirroring.landing_zone.onelake.storage import StagingFolder
from dbt.adapters.openmirroring.landing_zone.onelake.url import OneLakeUrl
from dbt.adapters.openmirroring.service.authentication import GivenToken
from tests.benchmarks.project import median_ratio
from tests.onelake_server import ROOT, TOKEN, URL, OneLakeServer, listening, through_sockets

FOLDER = "_scratchPad/bench.rows/1/rows"
FILE = 64 * 2**20

_processes = multiprocessing.get_context("fork")

Transport = Callable[..., RequestsTransport]
Way = Callable[[Path, Transport], None]


def serve(authority: trustme.CA, pipe: Connection) -> None:
    server = OneLakeServer()
    with listening(server, authority) as port:
        pipe.send(port)
        pipe.recv()


def ours(staging: Path, _transport: Transport) -> None:
    client = onelake.OneLakeClient.connect(OneLakeUrl.parse(URL), GivenToken(TOKEN))
    onelake.OneLakeStorage(client, StagingFolder(f"file://{staging}")).collect(FOLDER)


def plain(staging: Path, transport: Transport) -> None:
    place = OneLakeUrl.parse(URL)
    client = DataLakeServiceClient(place.account_url, GivenToken(TOKEN), transport=transport())
    files = client.get_file_system_client(place.workspace)

    def upload(path: Path) -> None:
        with path.open("rb") as content:
            size = path.stat().st_size
            file = files.get_file_client(f"{ROOT}/{FOLDER}/{path.name}")
            file.upload_data(content, length=size, overwrite=True)

    with ThreadPoolExecutor(onelake._UPLOADS) as pool:
        list(pool.map(upload, (staging / FOLDER).iterdir()))


def measured(way: Way, staging: Path, port: int, pipe: Connection) -> None:
    with through_sockets(port, staging / "ca.pem") as transport:
        start = time.monotonic()
        way(staging, transport)
        took = time.monotonic() - start
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    pipe.send((took, memory / (2**20 if sys.platform == "darwin" else 2**10)))


def measure(way: Way, staging: Path, authority: trustme.CA) -> tuple[float, float]:
    """Seconds, and the most memory that the uploading process has had, in MB."""
    (here, there), (result, outcome) = _processes.Pipe(), _processes.Pipe()
    server = _processes.Process(target=serve, args=(authority, there))
    server.start()
    client = _processes.Process(target=measured, args=(way, staging, here.recv(), outcome))
    client.start()
    figures: tuple[float, float] = result.recv()
    client.join()
    here.send("end")
    server.join()
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("megabytes", nargs="*", type=int, default=[256, 1024])
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    authority = trustme.CA()
    print("| MB | plain, MB/s | ours, MB/s | ratio of times | plain, MB of memory | ours |")
    print("|---|---|---|---|---|---|")
    for megabytes in arguments.megabytes:
        with tempfile.TemporaryDirectory() as name:
            staging = Path(name)
            authority.cert_pem.write_to_path(str(staging / "ca.pem"))
            (staging / FOLDER).mkdir(parents=True)
            for i in range(megabytes * 2**20 // FILE):
                (staging / FOLDER / f"part-{i:05}.parquet").write_bytes(os.urandom(FILE))
            figures = [
                (measure(plain, staging, authority), measure(ours, staging, authority))
                for _ in range(arguments.rounds)
            ]
        times = [[seconds for seconds, _ in way] for way in zip(*figures, strict=True)]
        memory = [max(used for _, used in way) for way in zip(*figures, strict=True)]
        cells = [
            *(f"{statistics.median(megabytes / s for s in way):.0f}" for way in times),
            f"{median_ratio(times[1], times[0]):.2f}",
            *(f"{used:.0f}" for used in memory),
        ]
        print(f"| {megabytes} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
