"""The rules: what happens next to a table. No rule drops the only copy of published rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeAlias

from dbt.adapters.openmirroring.protocol import start
from dbt.adapters.openmirroring.protocol.actions import (
    Done,
    Drop,
    Keep,
    Look,
    Move,
    Note,
    Refused,
    Rename,
    Restate,
    Step,
    Write,
)
from dbt.adapters.openmirroring.protocol.facts import (
    PART,
    PUBLISHED,
    UNMIRRORED,
    Beside,
    BuildOnly,
    EndCode,
    Explain,
    Facts,
    Files,
    GoAhead,
    Intent,
    Itself,
    LookOnly,
    Part,
    Preview,
    Publish,
    PublishHeld,
    PublishPresent,
    Recover,
    Relation,
    Repair,
    Restore,
    RunStatement,
    Settle,
    State,
)

Rule: TypeAlias = Callable[[Facts, Any], Move | None]


def next_action(facts: Facts, intent: Intent) -> Move:
    """Return the next action on a table, or how it ends.

    Args:
        intent: what is wanted of the table
    """
    for rule in RULES[type(intent)]:
        if move := rule(facts, intent):
            return move
    return Done()


def take_part(facts: Facts, _: Intent) -> Move | None:
    """5. Let the relation take the changes that are meant for it in place.

    It may refuse them, so it takes them before any file is published. In a later run, it takes
    them only if their files are there, and nobody else has changed it since the batch was planned.
    """
    batch = facts.manifest
    if facts.state is not State.COMMITTED or not batch or not batch.in_place:
        return None
    is_lost = any(each.id == batch.id for each in facts.lost)
    if is_lost or facts.relation is not Relation.THERE:
        return None
    if facts.files in (Files.LOST, Files.PUBLISHED) or Beside(PART, batch.id) not in facts.beside:
        return None
    if batch.is_mine:
        return Step.TAKE_PART if facts.part in (Part.UNKNOWN, Part.OPEN) else None
    if facts.files is Files.UNKNOWN:
        return Look.AT_FILES
    match facts.part:
        case Part.UNKNOWN:
            return Look.AT_PART
        case Part.OPEN:
            return Step.TAKE_PART
        case Part.TAKEN:
            return Step.MARK_TAKEN
    return None


def publish(facts: Facts, _: Intent) -> Move | None:
    """6 and 7. Publish the files of the manifest, and write the journal."""
    if facts.state is not State.COMMITTED or facts.files is Files.LOST:
        return None
    return Step.RECORD if facts.files is Files.PUBLISHED else Step.PUBLISH


def give_up(facts: Facts, intent: Recover) -> Move | None:
    """Refuse a batch whose staged files are lost, or let a full load replace it.

    Everything beside the relation stays, as it may have the only rows that were published. If the
    relation is missing, the build of the batch becomes the relation: it is the only table with its
    rows, and a user may delete the manifest.
    """
    batch = facts.manifest
    if facts.state is not State.COMMITTED or not batch:
        return None
    if facts.is_missing:
        for build in (batch.build, facts.held.build if facts.held else None):
            if found := facts.following(build):
                return _into_place(facts, found)
    return Step.SUPERSEDE if intent.replaces else Refused.FILES_LOST


def catch_up(facts: Facts, intent: Intent) -> Move | None:
    """8. Let the relation have the build that was published last, if it stands beside."""
    if found := facts.following(facts.last):
        return _into_place(facts, found)
    if not facts.is_missing:
        return None
    # a run was killed while it replaced the relation by the build that is held
    if facts.held and (found := facts.following(facts.held.build)):
        return _into_place(facts, found)
    if facts.last and Beside(PUBLISHED, facts.last) in facts.beside:
        kept = Beside(PUBLISHED, facts.last)
        # these rows may be a copy, in another state
        if isinstance(intent, Recover) and not facts.is_state_kept:
            return Restate(facts.last)
        return _into_place(facts, kept)
    return None


def refuse_taken_away(facts: Facts, intent: GoAhead) -> Move | None:
    """Code of the user has taken the relation away, which had the rows of a build already."""
    if facts.following(intent.build):
        return None
    if facts.relation is not Relation.THERE:
        return Refused.DROPPED
    return Refused.REPLACED_BY_VIEW if facts.is_view else None


def withdraw(facts: Facts, _: Intent) -> Move | None:
    """Withdraw a batch that nobody can finish, before the relation goes ahead of it."""
    return Step.WITHDRAW if facts.is_superseded else None


def write_record(facts: Facts, intent: GoAhead) -> Move | None:
    """Write the record of held rows before the relation has them.

    If the process is killed in between, the record is wrong, but the next run corrects it.
    """
    if intent.held is None or (facts.held and facts.held.build == intent.build):
        return None
    is_finished = intent.held.is_finished and not intent.is_doubtful
    return Write(replace(intent.held, is_finished=is_finished, before=intent.before))


def mark(facts: Facts, intent: GoAhead) -> Move | None:
    """Mark a relation with the build whose rows it has, or takes in place.

    Its version of before may have those that were published last.
    """
    if facts.relation is not Relation.THERE or facts.following(intent.build):
        return None
    if intent.held and facts.marked.build != intent.build:
        has_published = facts.baseline == Itself(intent.keeps)
        return Note(intent.build, intent.keeps if has_published else None)
    is_unmirrored = intent.in_place and not intent.held
    return Step.UNMIRROR if is_unmirrored and not facts.marked.is_unmirrored else None


def take_ahead(facts: Facts, intent: GoAhead) -> Move | None:
    """Let a relation take rows in place."""
    return Step.TAKE_AHEAD if intent.in_place and facts.part is not Part.MARKED else None


def rebuild_replaced(facts: Facts, _: GoAhead) -> Move | None:
    """Code of the user has replaced the table whose earlier version had the published rows."""
    held = facts.ahead
    if not held or held.rebuild or not facts.last or facts.published:
        return None
    return Write(replace(held, rebuild=start.REPLACED))


def write_record_again(facts: Facts, intent: GoAhead) -> Move | None:
    """Record that the relation has the rows of a build, and whether they may be published."""
    if intent.held is None or facts.held is None:
        return None
    wanted = replace(intent.held, rebuild=facts.held.rebuild)
    return None if replace(facts.held, before=None) == wanted else Write(wanted)


def explain(facts: Facts, intent: Explain) -> Move | None:
    if facts.manifest or not facts.held or facts.held.why == intent.why:
        return None
    return Write(replace(facts.held, why=intent.why))


def restate(facts: Facts, _: Intent) -> Move | None:
    """The rows of the relation are those of the journal, which gets their build."""
    build = facts.marked.build
    return Restate(build) if build and facts.last not in (None, build) else None


def forget_held(facts: Facts, _: Intent) -> Move | None:
    return Step.FORGET_HELD if facts.held or facts.is_held_damaged else None


def go_ahead(facts: Facts, intent: GoAhead) -> Move | None:
    """Let a next snapshot be the relation. The rows that were published last stay beside it."""
    found = facts.following(intent.build)
    if not found:
        return None
    if intent.keeps and facts.relation is Relation.THERE:
        kept = Beside(PUBLISHED, intent.keeps)
        if kept not in facts.beside:
            return Keep(kept)
    return _into_place(facts, found, is_finishing=False)


def catch_up_unmirrored(facts: Facts, _: Intent) -> Move | None:
    """8. Let the relation have a build of `mirror: false`, which was killed in its swap."""
    if not facts.is_missing:
        return None
    found = [each for each in facts.beside if each.kind == UNMIRRORED]
    return _into_place(facts, found[-1], is_finishing=False) if found else None


def drop_leftovers(facts: Facts, intent: Intent) -> Move | None:
    """8. Drop what else runs have left beside the relation. Rows that are published stay."""
    for each in (*facts.beside, *facts.lost):
        is_kept = each.kind == PUBLISHED and (
            isinstance(intent, BuildOnly) or each.id == facts.last
        )
        if not is_kept:
            return Drop(each)
    return None


def complete(facts: Facts, _: Intent) -> Move | None:
    """8. Clear the scratch pad."""
    return Step.COMPLETE if facts.state is State.RECORDED else None


def refuse_moved_away(facts: Facts, _: Intent) -> Move | None:
    """A run that changes nothing cannot bring a relation back that was moved away."""
    return Refused.MOVED_AWAY if facts.is_moved_away else None


def _into_place(facts: Facts, table: Beside, is_finishing: bool = True) -> Move:
    if facts.relation is not Relation.MISSING:
        return Step.DROP_RELATION
    return Rename(table, is_finishing)


_START: tuple[Rule, ...] = (
    start.rebuild_on_request,
    start.refuse_lost_folder,
    start.rebuild_as_held,
    start.rebuild_unmirrored,
    start.rebuild_returned,
    start.refuse_out_of_step,
    start.refuse_foreign,
    start.compare,
)

RULES: dict[type[Intent], tuple[Rule, ...]] = {
    Recover: (
        take_part,
        publish,
        give_up,
        catch_up,
        catch_up_unmirrored,
        drop_leftovers,
        complete,
    ),
    GoAhead: (
        refuse_taken_away,
        withdraw,
        write_record,
        mark,
        take_ahead,
        go_ahead,
        rebuild_replaced,
        write_record_again,
    ),
    RunStatement: (start.keep_before,),
    EndCode: (
        start.look_at_code,
        start.refuse_dropped,
        start.keep_nothing,
        start.rebuild_taken,
    ),
    Settle: (restate, forget_held, drop_leftovers),
    Explain: (explain,),
    BuildOnly: (catch_up, catch_up_unmirrored, drop_leftovers),
    LookOnly: (refuse_moved_away,),
    Publish: (start.refuse_stale, start.drop_lost, start.look_before_keeping, *_START),
    Preview: (start.refuse_interrupted, refuse_moved_away, *_START),
    PublishHeld: (
        start.refuse_damaged_record,
        start.refuse_lost_folder,
        start.forget_held,
        start.refuse_other_build,
        start.refuse_no_rows,
        start.rebuild_as_held,
        start.refuse_out_of_step,
        start.compare,
    ),
    PublishPresent: (
        start.refuse_lost_folder,
        start.refuse_no_rows,
        start.rebuild_as_it_is,
    ),
    Repair: (
        start.refuse_lost_folder,
        start.refuse_repair,
        start.refuse_no_rows,
        start.refuse_out_of_step,
        start.refuse_foreign,
        start.compare,
    ),
    Restore: (start.refuse_interrupted, start.keep_rows, start.fetch),
}
