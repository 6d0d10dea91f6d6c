"""The rules before a publication: whether an intent goes on, how, and from which rows.

Recovery comes first. Rows that a publication is compared with are never taken on trust: relation
and journal have the same build and state, or the rows stand beside, or nothing is compared.
"""

from __future__ import annotations

from dbt.adapters.openmirroring.protocol.actions import (
    Compare,
    Done,
    Fetch,
    Look,
    Move,
    Rebuild,
    Refused,
    Step,
)
from dbt.adapters.openmirroring.protocol.facts import (
    PUBLISHED,
    Baseline,
    Beside,
    Earlier,
    Facts,
    GoAhead,
    Held,
    Intent,
    Itself,
    Kept,
    Missing,
    Publish,
    PublishHeld,
    Relation,
    Repair,
    Restore,
    Rows,
    State,
    Unpublished,
)

REPLACED = "a hook has replaced the table in Spark"


def baseline_of(facts: Facts) -> Baseline:
    """Return where the rows are that were published last."""
    last, marked, held = facts.last, facts.marked, facts.held
    if last and Beside(PUBLISHED, last) in facts.beside:
        return Kept(Beside(PUBLISHED, last))
    if facts.relation is not Relation.THERE:
        return Missing()
    if marked.noted and marked.noted[0] == last:
        return Earlier(marked.noted[1])
    if held and marked.build not in (None, last) and marked.build in (held.build, held.before):
        return Unpublished()
    return Itself(marked.build)


def published_build(facts: Facts) -> str | None:
    """Return the id of the build that was published last, if Spark has its rows."""
    match baseline_of(facts):
        case Kept() | Earlier() | Itself(facts.last):
            return facts.last
    return None


def kept_build(facts: Facts) -> str | None:
    """Return the id of the build that was published last, if its rows are to stay beside.

    Rows that others may have changed never do: a later run would take them for published.
    """
    is_doubtful = isinstance(baseline_of(facts), Itself) and facts.rows is not Rows.PUBLISHED
    return None if is_doubtful else published_build(facts)


def is_ahead(facts: Facts) -> bool:
    """Check whether the relation is ahead of the rows that were published last, or may be."""
    return isinstance(baseline_of(facts), Earlier | Kept | Unpublished)


def build_ahead(facts: Facts) -> str | None:
    """Return the id of the build that is the relation, if that is ahead."""
    return facts.marked.build if is_ahead(facts) else None


def goes_ahead(facts: Facts, intent: Publish) -> bool:
    """Check whether a build becomes the relation before its rows are published."""
    return intent.is_held or intent.has_hooks or is_ahead(facts)


def hold(facts: Facts, held: Held, in_place: bool) -> GoAhead:
    """Return how a build becomes the relation before its rows are published."""
    before = build_ahead(facts)
    # the relation has the rows of a run that has failed until it has taken those of this one
    is_doubtful = bool(in_place and before and not (facts.ahead and facts.ahead.is_finished))
    return GoAhead(held.build, held, before, kept_build(facts), in_place, is_doubtful)


def may_keep_rows(facts: Facts, intent: Publish) -> bool:
    """Check whether a build may keep rows and files of the relation."""
    if facts.marked.is_unmirrored:
        return False  # the relation loses the mark of `mirror: false` when it is replaced
    # keys may repeat in rows that no publication has checked
    return not is_ahead(facts) or (intent.is_held and not intent.has_hooks)


def refuse_interrupted(facts: Facts, _: Intent) -> Move | None:
    """A dry run changes nothing, so it finishes no batch."""
    return Refused.COMMITTED if facts.manifest else None


def refuse_stale(facts: Facts, intent: Intent) -> Move | None:
    """The SQL of a node was compiled from the rows of before a batch was finished."""
    assert isinstance(intent, Publish)
    return Refused.STALE if facts.has_finished and intent.extends else None


def look_before_keeping(facts: Facts, intent: Intent) -> Move | None:
    """The rows that were published last stay beside a build that goes ahead, if they are those."""
    assert isinstance(intent, Publish)
    is_kept = goes_ahead(facts, intent) and facts.last and not is_ahead(facts)
    if is_kept and published_build(facts) and facts.rows is Rows.UNKNOWN:
        return Look.AT_ROWS
    return None


def rebuild_on_request(_: Facts, intent: Intent) -> Move | None:
    assert isinstance(intent, Publish)
    return Rebuild(intent.full_refresh) if intent.full_refresh else None


def rebuild_as_held(facts: Facts, _: Intent) -> Move | None:
    """It was known when the relation was built that its rows need a rebuild."""
    return Rebuild(facts.ahead.rebuild) if facts.ahead and facts.ahead.rebuild else None


def rebuild_unmirrored(facts: Facts, _: Intent) -> Move | None:
    """The user's own configuration has replaced the rows that were published."""
    baseline = baseline_of(facts)
    if not facts.last or isinstance(baseline, Kept):
        return None
    if facts.marked.is_view:
        return Rebuild("was a view meanwhile")
    return Rebuild("was not mirrored meanwhile") if facts.marked.is_unmirrored else None


def rebuild_returned(facts: Facts, _: Intent) -> Move | None:
    """The table is back in a folder, which has the rows of before."""
    match baseline_of(facts):
        case Itself(str(build)) if facts.last not in (None, build) and facts.is_own:
            if facts.elsewhere is None:
                return Look.AT_OTHER_FOLDERS
            return Rebuild(facts.elsewhere) if facts.elsewhere else None
    return None


def refuse_out_of_step(facts: Facts, _: Intent) -> Move | None:
    """Nothing in Spark has the rows of the journal."""
    return Refused.OUT_OF_STEP if facts.last != published_build(facts) else None


def refuse_foreign(facts: Facts, intent: Intent) -> Move | None:
    """Others have changed the rows that were published last."""
    if not facts.last or is_ahead(facts):
        return None
    if facts.rows is Rows.UNKNOWN:
        return Look.AT_ROWS
    if facts.rows is Rows.PUBLISHED:
        return None
    return Step.ADOPT if isinstance(intent, Publish) and intent.adopts else Refused.FOREIGN


def compare(facts: Facts, _: Intent) -> Move | None:
    return Compare(baseline_of(facts))


def refuse_damaged_record(facts: Facts, _: Intent) -> Move | None:
    return Refused.RECORD_DAMAGED if facts.is_held_damaged else None


def forget_held(facts: Facts, _: Intent) -> Move | None:
    """Nothing is held. A killed run may have left the record of rows that are published now."""
    if is_ahead(facts):
        return None
    return Step.FORGET_HELD if facts.held else Done()


def refuse_other_build(facts: Facts, intent: Intent) -> Move | None:
    """Another run has built the node since its tests started."""
    assert isinstance(intent, PublishHeld)
    found = facts.ahead.build if facts.ahead else None
    return Refused.OTHER_BUILD if intent.tested and intent.tested != found else None


def refuse_no_rows(facts: Facts, _: Intent) -> Move | None:
    """Spark does not have the rows of a node, or may have those of a failed run."""
    if facts.relation is not Relation.THERE or facts.marked.is_view:
        return Refused.NO_TABLE
    if is_ahead(facts) and not (facts.ahead and facts.ahead.is_finished):
        return Refused.UNFINISHED
    if facts.has_folder is None:
        return Look.AT_FOLDER
    return None if facts.has_folder else Refused.FOLDER_LOST


def rebuild_as_it_is(_: Facts, __: Intent) -> Move | None:
    return Rebuild("mirror_rebuild")


def refuse_repair(facts: Facts, intent: Intent) -> Move | None:
    """The mirrored table does not have what the relation has, for a reason that is known."""
    assert isinstance(intent, Repair)
    if not facts.last or not facts.is_own:
        return Refused.NOT_PUBLISHED
    if is_ahead(facts):
        return Refused.HELD
    return None if intent.has_format else Refused.OTHER_FORMAT


def keep_rows(facts: Facts, intent: Intent) -> Move | None:
    """Spark has the rows that a restore would bring back, or rows that may not be replaced."""
    assert isinstance(intent, Restore)
    if not facts.last or not facts.is_own or (intent.is_dry and facts.state is State.INTERRUPTED):
        return Done()
    if facts.relation is not Relation.THERE:
        return None
    match baseline_of(facts):
        case _ if not intent.replaces:
            return Done()
        case Kept() | Earlier():
            return Done()
        case Itself(facts.last):
            if facts.has_folder is None:
                return Look.AT_FOLDER
            if facts.has_folder and facts.rows is Rows.UNKNOWN:
                return Look.AT_ROWS
            return Done() if facts.rows is Rows.PUBLISHED else None
    return None


def fetch(_: Facts, __: Intent) -> Move | None:
    return Fetch()
