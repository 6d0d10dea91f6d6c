"""Replicates a landing zone once, or on and on as the service does."""

from __future__ import annotations

import argparse
import io
import sys
import time
from pathlib import Path

from dbt.adapters.openmirroring.replicator.errors import ReplicatorError
from dbt.adapters.openmirroring.replicator.monitoring import lines
from dbt.adapters.openmirroring.replicator.replicator import Replicator
from dbt.adapters.openmirroring.text.table import terminal_width


def main() -> int:
    """Run the command.

    Returns:
        the exit status: 1 if a table has failed or the path is no landing zone
    """
    parser = argparse.ArgumentParser(
        prog="python -m dbt.adapters.openmirroring.replicator", description=__doc__
    )
    parser.add_argument("landing_zone", metavar="LANDING_ZONE", type=Path)
    parser.add_argument(
        "--watch",
        metavar="SECONDS",
        type=float,
        help="scan again after each of so many seconds",
    )
    arguments = parser.parse_args()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a table may have a name that is not ASCII
    try:
        replicator = Replicator(arguments.landing_zone.resolve())
        if not arguments.landing_zone.is_dir() and arguments.watch is None:
            raise ReplicatorError(f"The landing zone {arguments.landing_zone} does not exist.")
        reports = replicator.scan()
        print("\n".join(lines(reports, terminal_width())), flush=True)
        while arguments.watch is not None:
            time.sleep(arguments.watch)
            known = {(report.name, report.status, report.note) for report in reports}
            reports = replicator.scan()
            changed = [
                report
                for report in reports
                if report.files or (report.name, report.status, report.note) not in known
            ]
            if changed:
                print("\n".join(["", *lines(changed, terminal_width())]), flush=True)
    except ReplicatorError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 0
    return 1 if any(report.error for report in reports) else 0


if __name__ == "__main__":
    sys.exit(main())
