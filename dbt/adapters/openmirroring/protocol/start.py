"""The rules before a publication: whether an intent goes on, how, and from which rows.

Recovery comes first. Rows that a publication is compared with are never taken on trust: relation
and journal have the same build and state, or the rows stand beside, or nothing is compared.
"""

from __future__ import annotations

from dbt.adapters.openmirroring.protocol.actions import (
    Compare,
    Done,
    Drop,
    Fetch,
    Look,
    Move,
    Note,
    Rebuild,
    Refused,
    Step,
)
from dbt.adapters.openmirroring.protocol.facts import (
    PUBLISHED,
    Beside,
    Earlier,
    EndCode,
    Facts,
    GoAhead,
    Held,
    Intent,
    Itself,
    Kept,
    Publish,
    PublishHeld,
    Relation,
    Repair,
    Restore,
    Rows,
    RunStatement,
    State,
)

REPLACED = "a hook has replaced the table in Spark"
CHANGED = "code of the node has changed the table in Spark"


def goes_ahead(facts: Facts, intent: Publish) -> bool:
    """Check whether a build becomes the relation before its rows are published."""
    return intent.is_held or intent.has_hooks or facts.is_ahead


def hold(facts: Facts, held: Held, in_place: bool = False) -> GoAhead:
    """Return how a build becomes the relation before its rows are published.

    Rows that others may have changed never stay beside: a later run would take them for published.
    """
    before = facts.marked.build if facts.is_ahead else None
    # the relation has the rows of a run that has failed until it has taken those of this one
    is_failed = bool(in_place and before and not (facts.ahead and facts.ahead.is_finished))
    is_doubtful = isinstance(facts.baseline, Itself) and facts.rows is not Rows.PUBLISHED
    keeps = None if is_doubtful else facts.published
    return GoAhead(held.build, held, before, keeps, in_place, is_failed)


def may_keep_rows(facts: Facts, intent: Publish) -> bool:
    """Check whether a build may keep rows and files of the relation."""
    if facts.marked.is_unmirrored or facts.relation is Relation.LOST:
        return False  # the relation loses the mark of `mirror: false` when it is replaced
    # keys may repeat in rows that no publication has checked
    return not facts.is_ahead or (intent.is_held and not intent.has_hooks)


def refuse_interrupted(facts: Facts, _: Intent) -> Move | None:
    """A dry run changes nothing, so it finishes no batch."""
    return Refused.COMMITTED if facts.manifest else None


def refuse_stale(facts: Facts, intent: Publish) -> Move | None:
    """The SQL of a node was compiled from the rows of before a batch was finished."""
    return Refused.STALE if facts.has_finished and intent.extends else None


def look_before_keeping(facts: Facts, intent: Publish) -> Move | None:
    """The rows that were published last stay beside a build that goes ahead, if they are those."""
    is_kept = goes_ahead(facts, intent) and facts.last and not facts.is_ahead
    if is_kept and facts.published and facts.rows is Rows.UNKNOWN:
        return Look.AT_ROWS
    return None


def rebuild_on_request(_: Facts, intent: Publish) -> Move | None:
    return Rebuild(intent.full_refresh) if intent.full_refresh else None


def rebuild_as_held(facts: Facts, _: Intent) -> Move | None:
    """It was known when the relation was built that its rows need a rebuild."""
    return Rebuild(facts.ahead.rebuild) if facts.ahead and facts.ahead.rebuild else None


def rebuild_unmirrored(facts: Facts, _: Intent) -> Move | None:
    """The user's own configuration has replaced the rows that were published."""
    baseline = facts.baseline
    if not facts.last or isinstance(baseline, Kept):
        return None
    if facts.is_view:
        return Rebuild("was a view meanwhile")
    return Rebuild("was not mirrored meanwhile") if facts.marked.is_unmirrored else None


def rebuild_returned(facts: Facts, _: Intent) -> Move | None:
    """The table is back in a folder, which has the rows of before."""
    match facts.baseline:
        case Itself(str(build)) if facts.last not in (None, build) and facts.is_own:
            if facts.elsewhere is None:
                return Look.AT_OTHER_FOLDERS
            return Rebuild(facts.elsewhere) if facts.elsewhere else None
    return None


def refuse_out_of_step(facts: Facts, _: Intent) -> Move | None:
    """Nothing in Spark has the rows of the journal."""
    if facts.last == facts.published:
        return None
    is_lost = Beside(PUBLISHED, facts.last or "") in facts.lost
    return Refused.FOLDER_LOST if is_lost else Refused.OUT_OF_STEP


def refuse_foreign(facts: Facts, intent: Intent) -> Move | None:
    """Others have changed the rows that were published last."""
    if not facts.last or facts.is_ahead:
        return None
    if facts.rows is Rows.UNKNOWN:
        return Look.AT_ROWS
    if facts.rows is Rows.PUBLISHED:
        return None
    return Step.ADOPT if isinstance(intent, Publish) and intent.adopts else Refused.FOREIGN


def compare(facts: Facts, _: Intent) -> Move | None:
    return Compare(facts.baseline)


def refuse_damaged_record(facts: Facts, _: Intent) -> Move | None:
    return Refused.RECORD_DAMAGED if facts.is_held_damaged else None


def forget_held(facts: Facts, _: Intent) -> Move | None:
    """Nothing is held. A killed run may have left the record of rows that are published now."""
    if facts.is_ahead:
        return None
    return Step.FORGET_HELD if facts.held else Done()


def refuse_other_build(facts: Facts, intent: PublishHeld) -> Move | None:
    """Another run has built the node since its tests started."""
    found = facts.ahead.build if facts.ahead else None
    return Refused.OTHER_BUILD if intent.tested and intent.tested != found else None


def refuse_no_rows(facts: Facts, _: Intent) -> Move | None:
    """Spark does not have the rows of a node, or may have those of a failed run."""
    if facts.relation is not Relation.THERE or facts.is_view:
        return Refused.NO_TABLE
    if facts.is_ahead and not (facts.ahead and facts.ahead.is_finished):
        return Refused.UNFINISHED
    return None


def refuse_lost_folder(facts: Facts, _: Intent) -> Move | None:
    """Spark reads no rows of a table whose folder is gone, or fails."""
    return Refused.FOLDER_LOST if facts.relation is Relation.LOST else None


def drop_lost(facts: Facts, _: Intent) -> Move | None:
    """The relation still has the rows of a table beside it that is lost."""
    kept = Beside(PUBLISHED, facts.last or "")
    return Drop(kept) if kept in facts.lost and facts.last == facts.published else None


def rebuild_as_it_is(_: Facts, __: Intent) -> Move | None:
    return Rebuild("mirror_rebuild")


def refuse_repair(facts: Facts, intent: Repair) -> Move | None:
    """The mirrored table does not have what the relation has, for a reason that is known."""
    if not facts.last or not facts.is_own:
        return Refused.NOT_PUBLISHED
    if facts.is_ahead:
        return Refused.HELD
    return None if intent.has_format else Refused.OTHER_FORMAT


def keep_rows(facts: Facts, intent: Restore) -> Move | None:
    """Spark has the rows that a restore would bring back, or rows that may not be replaced."""
    if not facts.last or not facts.is_own or (intent.is_dry and facts.state is State.INTERRUPTED):
        return Done()
    if facts.relation is not Relation.THERE:
        return None
    match facts.baseline:
        case _ if not intent.replaces:
            return Done()
        case Kept() | Earlier():
            return Done()
        case Itself(facts.last):
            if facts.rows is Rows.UNKNOWN:
                return Look.AT_ROWS
            return Done() if facts.rows is Rows.PUBLISHED else None
    return None


def fetch(_: Facts, __: Intent) -> Move | None:
    return Fetch()


def keep_before(facts: Facts, intent: RunStatement) -> Move | None:
    """Keep the rows that were published last, before a statement of the user may change them."""
    if not facts.published or facts.is_view:
        return None
    match facts.baseline:
        case Kept():
            return None
        case Earlier():
            return Step.COPY if intent.replaces else None
    if facts.version:
        return Step.COPY if intent.replaces else Note(None, facts.last, facts.version)
    # an earlier statement may have changed them, although it does not name the table
    if facts.is_touched is None:
        return Look.AT_CODE
    return None if facts.is_touched else Step.COPY


def look_at_code(facts: Facts, _: Intent) -> Move | None:
    return Look.AT_CODE if facts.is_touched is None else None


def keep_nothing(facts: Facts, intent: EndCode) -> Move | None:
    """The relation has its rows of before, or nothing was published that code could take away."""
    if facts.is_touched:
        return None if facts.last else Done()
    match facts.baseline:
        case Kept(copy) if not isinstance(intent.before, Kept):
            return Drop(copy)
        case Earlier() if isinstance(intent.before, Itself):
            return Step.FORGET_VERSION
    return Done()


def refuse_dropped(facts: Facts, intent: EndCode) -> Move | None:
    """The SQL of the node reads rows that are gone."""
    is_gone = facts.relation is not Relation.THERE
    return Refused.CODE_DROPPED if is_gone and intent.extends else None


def rebuild_taken(facts: Facts, intent: EndCode) -> Move | None:
    """The code has taken away the rows that were published last, and nothing else has them."""
    if isinstance(facts.baseline, Kept):
        return None
    if facts.relation is not Relation.THERE or facts.marked.build != intent.build:
        return Rebuild(REPLACED)
    if not isinstance(facts.baseline, Itself):
        return None
    return Note(None, facts.last, facts.version) if facts.version else Rebuild(CHANGED)
