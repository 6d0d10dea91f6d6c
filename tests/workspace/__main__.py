"""Ask a Fabric workspace every open question, and write down what it says.

The command makes a mirrored database of its own and removes it at the end. It touches nothing else
in the workspace.
"""

from __future__ import annotations

import argparse
import os
import platform
import secrets
import socket
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import jwt
from azure.core.credentials import TokenCredential
from azure.core.exceptions import AzureError
from dbt_common.exceptions import DbtRuntimeError
from pydantic import ValidationError

from dbt.adapters.openmirroring.__version__ import version
from dbt.adapters.openmirroring.rest import scopes
from dbt.adapters.openmirroring.service.authentication import (
    Identity,
    require_token,
    token_credential,
)
from dbt.adapters.openmirroring.service.mirrored_database import FabricApi
from tests.workspace import service
from tests.workspace.pages import page_of
from tests.workspace.place import (
    Asked,
    CachedTokens,
    Clock,
    Place,
    counted,
    create,
    databases,
    find_workspace,
    remove,
)
from tests.workspace.probe import NEEDS, PROBES, Probe, Saw, Service, with_those_before
from tests.workspace.result import Cleaner, Observation, Result, System
from tests.workspace.run import Interruptions, Made, Undo, ask

# what a name of a mirrored database begins with that is left
NAME = "dbt_openmirroring_probe_"

# as measured against stand-ins: requests to OneLake, and to the REST API in a minute
_REQUESTS, _A_MINUTE = 1_500, 5

# claims of a token that name somebody or something
_CLAIMS = (
    *("tid", "oid", "upn", "unique_name", "preferred_username", "email", "name", "appid"),
    *("given_name", "family_name", "ipaddr", "sub", "puid", "app_displayname", "azp", "sid"),
)

# groups of probes that need no table
_WITHOUT_MIRRORING = ("storage", "livy")

_SYSTEMS: dict[str, System] = {"Linux": "Linux", "Darwin": "Darwin", "Windows": "Windows"}

# why a probe was not asked that should have been
_STOPPED = "the run has ended before"


def _tell(line: str) -> None:
    print(f"{time.strftime('%H:%M:%S')}  {line}", flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.workspace", description=__doc__)
    add = parser.add_argument
    add("workspace", help="its name or id")
    add(
        "--only",
        type=int,
        nargs="+",
        choices=sorted(PROBES),
        metavar="NUMBER",
        help="ask only these probes, and those that have made what they go on with",
    )
    add(
        "--livy",
        default="",
        metavar="URL",
        help="ask Livy too: the session job connection "
        "string of a lakehouse. Each session takes capacity, in all for two hours",
    )
    add(
        "--pause-capacity",
        action="store_true",
        help="you will pause and resume the capacity "
        "when the command says so; all else on it stops meanwhile",
    )
    add("--rows", type=int, default=1_000_000, help="of three large publications (%(default)s)")
    add("--keep", action="store_true", help="leave the mirrored database, for --again")
    add(
        "--again",
        type=Path,
        metavar="RESULT",
        help="a run with --keep left the mirrored "
        "database eight days ago: ask what needs so long, then remove it",
    )
    add("--remove", metavar="RUN", help="only remove the mirrored database that a run has left")
    logins = ("default", "cli", "environment", "managed_identity", "notebook")
    add("--authentication", choices=logins, default="default", help="as in the profile")
    add("--folder", type=Path, default=Path("build", "fabric"), help="of the result (%(default)s)")
    add("--patience", type=float, default=1.0, help=argparse.SUPPRESS)
    add("--stand-ins", action="store_true", help=argparse.SUPPRESS)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    Returns:
        the exit status: 1 if something is left in the workspace or the run did not start, 2 if it
        was interrupted
    """
    options = _parser().parse_args(arguments)
    identity = Identity(options.authentication)
    counts: dict[Service, int] = {}
    with counted(counts):
        try:
            credential = CachedTokens(token_credential(identity))
            require_token(credential, identity)
            api = FabricApi(credential, Clock(options.patience))
            workspace = find_workspace(api, options.workspace)
            earlier = _earlier(options.again)
            if options.remove:
                return _remove(api, workspace["id"], options.remove)
            return _Run(options, identity, credential, api, workspace, earlier, counts).run()
        except DbtRuntimeError as error:
            print(error.msg, file=sys.stderr)
            return 1


def _earlier(path: Path | None) -> Result | None:
    """Read the result of the first run."""
    try:
        earlier = Result.model_validate_json(path.read_text()) if path else None
    except (OSError, ValidationError) as error:
        raise DbtRuntimeError(f"{path} is not the result of a run: {error}") from None
    if earlier and not earlier.kept:
        raise DbtRuntimeError(
            f"The run of {path} has removed its mirrored database. Run again with --keep first."
        )
    return earlier


def _remove(api: FabricApi, workspace: str, run: str) -> int:
    name = f"{NAME}{run.removeprefix(NAME)}"
    is_there = bool(databases(api, workspace, name))
    remove(api, workspace, name)
    print(f"{name} was {'removed' if is_there else 'not there'}.")
    return 0


class _Run:
    """One run of the command."""

    def __init__(
        self,
        options: argparse.Namespace,
        identity: Identity,
        credential: TokenCredential,
        api: FabricApi,
        workspace: dict[str, str],
        earlier: Result | None,
        counts: dict[Service, int],
    ) -> None:
        self._options, self._credential, self._api = options, credential, api
        self._workspace, self._earlier, self._counts = workspace, earlier, counts
        again, rows = earlier is not None, options.rows
        pauses, patience = options.pause_capacity, options.patience
        self._asked = Asked(identity, rows, options.livy, pauses, again, patience)
        self._id = earlier.run if earlier else secrets.token_hex(4)
        self._name = f"{NAME}{self._id}"
        self._begun = time.monotonic()
        self._undo = Undo()
        self._kept = False
        self._observations: list[Observation] = []
        self._cleaner = Cleaner(_names_of(credential, workspace, self._name, options.livy))
        self._probes, self._left_out = self._chosen()

    def run(self) -> int:
        """Ask all probes, write the result, and remove what was made."""
        self._announce()
        interruptions = Interruptions(_tell)
        problem, is_stopped = "", False
        with (
            interruptions.handled(),
            tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        ):
            try:
                with interruptions.stop():
                    self._ask(Path(folder))
            except KeyboardInterrupt:
                is_stopped = True
            except DbtRuntimeError as error:
                problem = error.msg
            finally:
                left = self._undo_all()
                self._write()
        if problem:
            print(problem, file=sys.stderr)
        return 1 if left or problem else 2 if is_stopped else 0

    def _chosen(self) -> tuple[list[Probe], list[tuple[Probe, str]]]:
        """Return the probes to ask, and the others with the reason."""
        has = {
            "livy": bool(self._options.livy),
            "pause": self._options.pause_capacity,
            "week": self._asked.again,
            "notebook": service.is_in_notebook(),
        }
        asked, others = [], []
        wanted = with_those_before(self._options.only or PROBES)
        for _, each in sorted(PROBES.items()):
            # the second run asks for what a week has changed, and for what began then
            is_of_run = not self._asked.again or each.needs == "week" or each.number == 17
            reason = "" if has.get(each.needs, True) else NEEDS[each.needs]
            if each.number in wanted and is_of_run and not reason:
                asked.append(each)
            else:
                others.append((each, reason or "not asked for in this run"))
        return asked, others

    def _announce(self) -> None:
        """Say what is created, what it costs, and how long it takes."""
        options, name = self._options, self._name
        what = f"creates the mirrored database {name}, with about 50 small tables"
        if self._asked.again:
            what = f"looks at the mirrored database {name}, which an earlier run has left"
        end = "is removed at the end, also after an error or Ctrl-C"
        if options.keep:
            end = "stays there, for a second run with --again"
        sparks = " Livy's sessions take that of a Spark, in all for two hours."
        hours = "an hour, or two and a half if Fabric is slow"
        lines = (
            f"{len(self._probes)} of {len(PROBES)} probes. The run {what}.",
            f"It {end}. Nothing else in the workspace is touched.",
            f"Cost: mirroring is free. About {_REQUESTS:,} requests to OneLake and {_A_MINUTE} a "
            "minute to Fabric's REST API",
            f"take capacity.{sparks if options.livy else ''}",
            f"Time: {hours}{', and two hours more for Livy' if options.livy else ''}.",
            f"Result: {self._path('json')}, without names, ids, addresses and secrets.",
            "",
        )
        print("\n".join(lines), flush=True)

    def _path(self, kind: str) -> Path:
        """Return the path of the result, or of its page."""
        folder: Path = self._options.folder
        return folder / f"{self._id}.{kind}"

    def _ask(self, folder: Path) -> None:
        remove_it = partial(remove, self._api, self._workspace["id"], self._name)
        command = f"python -m tests.workspace <workspace> --remove {self._id}"
        how = f"delete it in the Fabric portal, or: {command}"
        # before it is there: the answer to its creation may be lost
        self._undo.add(f"the mirrored database {self._name}", how, remove_it)
        try:
            place = self._place(folder)
        except DbtRuntimeError as error:
            self._record(PROBES[39], Saw("failed", {}, (error.msg,)), 0)
            raise
        self._cleaner.learn(place.id)
        probes = self._probes
        if not place.has_started():
            probes = [p for p in probes if p.group in _WITHOUT_MIRRORING or p.number == 39]
            _tell("The mirrored database does not start, so only what needs no tables is asked.")
        ask(probes, place, self._record)

    def _place(self, folder: Path) -> Place:
        """Create the mirrored database, or find that of an earlier run."""
        workspace = self._workspace["id"]
        setup: dict[str, Any] = {}
        if self._asked.again:
            found = databases(self._api, workspace, self._name)
            if not found:
                raise DbtRuntimeError(
                    f"The mirrored database {self._name} is not in the workspace any more."
                )
            id_ = found[0]
        else:
            _tell(f"creating {self._name}")
            clock = Clock(self._asked.patience)
            id_, setup = create(self._api, self._credential, clock, workspace, self._name)
        undo, log = self._undo.add, self._path("log")
        log.parent.mkdir(parents=True, exist_ok=True)
        folders = (folder, log)
        return Place(self._asked, self._credential, workspace, id_, *folders, _tell, undo, setup)

    def _record(self, probe: Probe, seen: Saw, seconds: float) -> None:
        found = Observation.of(probe, seen, seconds, self._cleaner)
        self._observations.append(found)
        _tell(f"{probe.number:>2}  {probe.title}: {found.answer}. {found.summary}")
        for text in found.said:
            _tell(f"    it says: {text}")

    def _undo_all(self) -> list[Made]:
        database = f"the mirrored database {self._name}"
        self._kept = self._options.keep and bool(self._observations)
        _tell("removing what this run has made")
        left = self._undo.all(_tell, [database] if self._kept else [])
        for entry in left:
            print(f"There is still {entry.what}. To remove it: {entry.how}", flush=True)
        if self._kept:
            print(f"{self._name} was kept. In eight days: --again {self._path('json')}")
        elif not left:
            print("Nothing is left in the workspace.")
        return left

    def _write(self) -> None:
        """Write the result and its page."""
        answered = {each.probe for each in self._observations}
        stopped = [(p, _STOPPED) for p in self._probes if p.number not in answered]
        for probe, reason in (*self._left_out, *stopped):
            seen = Saw("not asked", {}, (reason,))
            self._observations.append(Observation.of(probe, seen, 0, self._cleaner))
        result = Result(
            run=self._id,
            package=version,
            python=f"{sys.version_info.major}.{sys.version_info.minor}",
            system=_SYSTEMS.get(platform.system(), "other"),
            against="stand-ins" if self._options.stand_ins else "Fabric",
            kept=self._kept,
            minutes=round((time.monotonic() - self._begun) / 60, 1),
            requests=dict(self._counts),
            observations=tuple(sorted(self._observations, key=lambda each: each.probe)),
        )
        if self._earlier:
            result = result.with_others(self._earlier)
        self._path("json").parent.mkdir(parents=True, exist_ok=True)
        self._path("json").write_text(result.to_json())
        self._path("md").write_text(page_of(result))
        print(
            f"Read {self._path('json')} and {self._path('md')}. Then open an issue with the "
            "template `What Fabric said`, and attach both."
        )
        if self._path("log").exists():
            print(f"{self._path('log')} has what dbt printed. It has names: do not attach it.")


def _names_of(
    credential: TokenCredential, workspace: dict[str, str], name: str, livy_url: str
) -> set[str]:
    """Return what must not be in a result: whoever runs this, where, and on which machine."""
    found = {*workspace.values(), name, socket.gethostname(), str(Path.home())}
    found |= {value for key, value in os.environ.items() if key.startswith(("AZURE_", "USER"))}
    found |= {part for part in livy_url.split("/") if len(part) > 20}
    for scope in (scopes.FABRIC, scopes.STORAGE):
        with suppress(jwt.InvalidTokenError, AzureError):
            token = credential.get_token(scope).token
            found.add(token)
            claims = jwt.decode(token, options={"verify_signature": False})
            found |= {str(claims[claim]) for claim in _CLAIMS if claims.get(claim)}
    return found


if __name__ == "__main__":
    sys.exit(main())
