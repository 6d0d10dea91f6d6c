"""The possible publishers of a table that has no node here: this target, or somebody else.

A landing zone may serve several targets, people and dbt projects, and the name of a project does
not tell them apart: `dbt init` proposes one, and every checkout has it. Whether a model of another
target is enabled is not known either. So a table belongs to this target only if the journals show
it: this target has published it last, in one of its schemas, and in a command that has also
published tables that are here, at least indirectly.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from dbt.adapters.openmirroring.landing_zone.records import Journal
from dbt.adapters.openmirroring.text.shown import shown


def doubt(
    journal: Journal,
    together: Collection[str],
    *,
    project: str,
    target: str,
    schemas: Collection[str],
) -> str:
    """Return why somebody else may publish a table of this project that has no node here.

    Args:
        journal: the journal of the table
        together: the ids of the batches that `published_together` has returned
        project: the name of the dbt project
        target: the name of the target in the profile
        schemas: the schemas of the nodes of the project

    Returns:
        the reason; empty if nobody else does
    """
    owner = journal.batch.owner
    if not owner.target:
        return "an earlier version of dbt-openmirroring published it last, for some target"
    if owner.target != target:
        return f"the target {shown(owner.target)!r} published it last"
    if owner.schema not in schemas:
        return f"this target has no schema {shown(owner.schema)!r}"
    if journal.batch.id not in together:
        return (
            "no command published it together with a table that is here, so it may be of another "
            f"project {project!r}"
        )
    return ""


def published_together(here: Iterable[Journal], others: Iterable[Journal]) -> set[str]:
    """Find tables that were published in one command with a table that is here.

    A table that was published together with one of these counts too.

    Args:
        here: the journals of the tables whose nodes are here
        others: the journals of the tables to look for

    Returns:
        the ids of the last batches of those that were found
    """
    commands = {command for journal in here for command in _commands(journal)}
    found: set[str] = set()
    left = list(others)
    while more := [journal for journal in left if not commands.isdisjoint(_commands(journal))]:
        found.update(journal.batch.id for journal in more)
        commands.update(command for journal in more for command in _commands(journal))
        left = [journal for journal in left if journal not in more]
    return found


def _commands(journal: Journal) -> set[str]:
    return {batch.invocation_id for batch in journal.batches} - {""}
