"""Every state of a table that runs, kills and hands of others lead to, with every intent.

A run is killed after each half of each action. Then somebody else may change the table, drop or
replace it, lose files or folders, damage or delete records, or finish the batch on another
machine. Code of the user that runs before a build may change the table too.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, TypeAlias

from dbt.adapters.openmirroring.protocol.actions import (
    Compare,
    Done,
    Drop,
    Fetch,
    Keep,
    Look,
    Move,
    Note,
    Rebuild,
    Refused,
    Rename,
    Restate,
    Start,
    Step,
)
from dbt.adapters.openmirroring.protocol.facts import (
    NEXT,
    PART,
    PUBLISHED,
    UNMIRRORED,
    Beside,
    BuildOnly,
    Committed,
    EndCode,
    Explain,
    Facts,
    Files,
    GoAhead,
    Held,
    Intent,
    Itself,
    Kept,
    LookOnly,
    Marks,
    Part,
    Preview,
    Publish,
    PublishHeld,
    PublishPresent,
    Recover,
    Relation,
    Repair,
    Restore,
    Rows,
    RunStatement,
    Settle,
    State,
)
from dbt.adapters.openmirroring.protocol.rules import next_action
from dbt.adapters.openmirroring.protocol.start import goes_ahead, hold, may_keep_rows
from tests.unit.protocol.tables import Batch, Run, Table, World, state_of
from tests.unit.protocol.tables import Code as Coded

OLD, NEW, LATER = frozenset({1, 2}), frozenset({2, 3, 4}), frozenset({4, 5})
HAND = frozenset({9})
INTENTS: tuple[Intent, ...] = (Recover(), Recover(replaces=True), BuildOnly(), LookOnly())
FULL, ADOPT = Publish(full_refresh="full_refresh"), Publish(adopts=True)
FULL_LOADS = (FULL, replace(FULL, is_held=True), replace(FULL, has_hooks=True))
# what a publication can be, once earlier runs are recovered
PUBLICATIONS: tuple[Intent, ...] = (
    *(Publish(), *FULL_LOADS, ADOPT, Publish(is_held=True), Publish(has_hooks=True)),
    *(PublishHeld(), PublishHeld("new"), PublishPresent(), Repair(), Restore(), Restore(True)),
)
# kills and hands on the way to a state
MOST_KILLS, MOST_HANDS = 3, 3

Way: TypeAlias = Callable[[World], World | None]
# statements: whether each names the table, and what it does
Code: TypeAlias = tuple[tuple[bool, Way], ...]


class Killed(Exception):
    """The process is gone."""


# What runs leave that are killed before their commit, or within their swap


def published(version: int = 0, build: str | None = "old") -> World:
    table = Table((OLD,) * (version + 1), build)
    journal = Batch("old", "old", OLD, state=version)
    return World(table, journal=journal, mirror=OLD)


def committed(world: World, batch: Batch) -> World:
    return replace(world, manifest=batch, staged=2, is_lost=False)


def runs() -> Iterator[tuple[str, list[World]]]:
    """Yield the worlds that runs make before they commit, the last one with their commit."""
    batch, table = Batch("new", "new", NEW), Table((NEW,), "new")
    world = World()
    built = world.having(NEXT, "new", table)
    yield "an initial load", [world, built, committed(built, batch)]
    world = published()
    built = world.having(NEXT, "new", table)
    yield "a change set or a rebuild", [world, built, committed(built, batch)]
    for rows in (OLD | {3}, NEW):
        in_place = replace(batch, rows=rows, version=1, state=None)
        world = published(version=1)
        built = world.having("new_rows", "new", Table((rows,))).having(PART, "new", Table((rows,)))
        yield "a change in place", [world, built, committed(built, in_place)]
    for first, keeps in ((published(), "old"), (World(), None)):
        built = replace(first, held=Held("new")).having(NEXT, "new", table)
        worlds = list(going_ahead(built, GoAhead("new", keeps=keeps)))
        last = committed(worlds[-1], Batch("publication", "new", NEW))
        yield "a held build", [built, *worlds, last]
    world = published(version=1)
    assert world.relation
    held = replace(world, held=Held("new"))
    noted = replace(world.relation, build="new", noted=("old", 1))
    ahead = replace(held, relation=noted.changed(noted.rows))
    taken = replace(held, relation=noted.changed(NEW))
    yield (
        "a build that is held in place",
        [
            *(world, held, ahead, taken),
            committed(taken, Batch("publication", "new", NEW, state=2)),
        ],
    )
    world = replace(published(), relation=Table((OLD | HAND,), "other"))
    restored = world.having(NEXT, "old", Table((OLD,), "old"))
    yield "a restore", [world, restored, *going_ahead(restored, GoAhead("old"))]
    for first in (World(), published()):
        mirrored = replace(first, relation=Table((OLD | {7},), is_unmirrored=True))
        built = mirrored.having(UNMIRRORED, "run", Table((NEW,), is_unmirrored=True))
        worlds = list(going_ahead(built, GoAhead("run")))
        yield "a build that is not mirrored", [mirrored, built, *worlds]


def going_ahead(world: World, intent: GoAhead) -> Iterator[World]:
    """Yield the worlds after each action that makes a build the relation."""
    found: list[World] = []
    run = Run(world, intent, watch=lambda _, after, __: found.append(after))
    assert run.carry_out() == Done()
    yield from found


# What somebody else does between two runs


def change_rows(world: World) -> World | None:
    if world.relation is None or world.relation.rows & HAND:
        return None
    return replace(world, relation=world.relation.changed(world.relation.rows | HAND))


def replace_rows(world: World) -> World | None:
    """As many rows as before."""
    if world.relation is None or world.relation.rows & HAND:
        return None
    rows = frozenset(sorted(world.relation.rows)[1:]) | HAND
    return replace(world, relation=world.relation.changed(rows))


def drop_table(world: World) -> World | None:
    return replace(world, relation=None) if world.relation else None


def replace_table(world: World) -> World | None:
    return replace(world, relation=Table((HAND,)))


def lose_spark(world: World) -> World | None:
    return replace(world, relation=None, beside=()) if world.tables else None


def lose_staged_files(world: World) -> World | None:
    return replace(world, is_lost=True) if world.manifest and world.staged else None


def delete_the_manifest(world: World) -> World | None:
    # a part of its files may be published: then the next run refuses the files of the folder
    if world.manifest is None or world.staged != 2:
        return None
    return replace(world, manifest=None, staged=0, is_lost=False)


def remove_old_versions(world: World) -> World | None:
    found = world.relation
    if found is None or found.oldest or found.noted or len(found.versions) == 1:
        return None
    return replace(world, relation=replace(found, oldest=len(found.versions) - 1))


def damage_the_held_record(world: World) -> World | None:
    return replace(world, held=None, is_held_damaged=True) if world.held else None


def lose_folder(world: World) -> World | None:
    found = world.relation
    return replace(world, relation=replace(found, is_lost=True)) if found else None


def lose_kept_folder(world: World) -> World | None:
    return lose_folders(world, lambda kind: kind == PUBLISHED)


def lose_other_folders(world: World) -> World | None:
    return lose_folders(world, lambda kind: kind != PUBLISHED)


def lose_folders(world: World, of: Callable[[str], bool]) -> World | None:
    beside = [
        (each, replace(table, is_lost=True) if of(each.kind) else table)
        for each, table in world.beside
    ]
    changed = replace(world, beside=tuple(beside))
    return None if changed == world else changed


def drop_beside(world: World) -> World | None:
    return replace(world, beside=()) if world.beside else None


def come_back(world: World) -> World | None:
    """The rows of Spark were published to another folder meanwhile."""
    return replace(world, relation=Table((OLD | {8},), "elsewhere", is_elsewhere=True))


def check_sql(world: World) -> World | None:
    return None if world.relation or world.is_checked else replace(world, is_checked=True)


def finish_elsewhere(world: World) -> World | None:
    """Another machine, which has no tables, finishes the batch."""
    if world.manifest is None or world.is_lost:
        return None
    run = Run(replace(world, relation=None, beside=(), is_checked=False), Recover())
    assert run.carry_out() == Done()
    here = {"relation": world.relation, "beside": world.beside, "is_checked": world.is_checked}
    return replace(run.world, **here)  # type: ignore[arg-type]


HANDS = (
    *(change_rows, replace_rows, drop_table, replace_table, lose_spark, lose_staged_files),
    *(delete_the_manifest, remove_old_versions, check_sql, finish_elsewhere),
    *(
        damage_the_held_record,
        lose_folder,
        lose_kept_folder,
        lose_other_folders,
        come_back,
        drop_beside,
    ),
)


# What must hold


def check_action(before: World, after: World, what: str) -> None:
    """No action drops the only copy of rows."""
    is_same = before.journal == after.journal and not any(t.is_lost for t in before.needed)
    if before.journal and is_same and before.has_copy_of(before.journal.rows):
        known = [batch.rows for batch in (after.journal, after.manifest) if batch]
        is_superseded = after.manifest is not None and Beside(PART, after.manifest.id) in dict(
            after.beside
        )
        # the next publication is a full load, whatever is beside
        is_superseded |= after.manifest is None and after.mirror is None
        assert is_superseded or any(map(after.has_copy_of, known)), what
    unmirrored = [table for table in before.tables if table.is_unmirrored and not table.is_lost]
    if before.relation is None and unmirrored:
        assert any(table.is_unmirrored for table in after.tables), what


def check_end(world: World, intent: Intent, move: Start | Done | Refused) -> None:
    """A run that has ended well leaves nothing wrong in silence."""
    if not isinstance(intent, Recover) or isinstance(move, Refused):
        return
    if intent.replaces:  # a full load follows
        return
    assert world.manifest is None
    kept = Beside(PUBLISHED, world.journal.build) if world.journal else None
    assert {each for each, _ in world.beside} <= {kept}, "something is left"
    is_right(world)


def begin(world: World, intent: Intent) -> tuple[Run, Start | Done | Refused]:
    """Start a publication, which is compared with the rows of the mirror, or not at all."""
    run = Run(world, intent, watch=check_action)
    end = run.carry_out()
    if isinstance(end, Compare) and is_torn(world):
        return run, Refused.FOREIGN  # the landing zone has files that nobody knows
    if isinstance(end, Compare) and world.journal:
        assert run.world.rows_of(end.baseline) == world.mirror, "rows are taken for published"
    return run, end


def go_on(run: Run, end: Start, in_place: bool = False) -> Iterator[World]:
    """Yield the worlds after each step of a publication that has started.

    Args:
        in_place: whether the relation takes the new rows in place
    """
    world, intent = run.world, run.intent
    journal, relation = world.journal, world.relation
    if isinstance(end, Fetch):
        assert journal
        assert world.mirror is not None
        rows = Table((world.mirror,) * ((journal.state or 0) + 1), journal.build)
        fetched = world.having(NEXT, journal.build, rows)
        yield from (fetched, *acted(fetched, GoAhead(journal.build)))
        return
    reason = end.reason if isinstance(end, Rebuild) else None
    facts = run.observe()
    if isinstance(intent, Publish):
        batch = Batch("run", "run", LATER)
        built = world if in_place else world.having(NEXT, "run", Table((LATER,), "run"))
        yield built
        if goes_ahead(facts, intent):
            ahead = hold(facts, Held("run", reason, not intent.has_hooks), in_place)
            worlds = acted(built, ahead, keeps=ahead.keeps is not None)
            yield from worlds
            if intent.is_held:
                return
            built, found = worlds[-1], worlds[-1].relation
            assert found
            batch = replace(batch, id="later", state=len(found.versions) - 1)
    else:
        assert relation
        built, build = world, relation.build or "none"
        if isinstance(intent, PublishPresent):
            build = "run"
            worlds = acted(world, hold(facts, Held(build, reason)))
            yield from worlds
            built = worlds[-1]
        batch = Batch("later", build, relation.rows, state=len(relation.versions) - 1)
    done = committed(built, batch)
    yield from (done, *acted(done, Recover(), batch.id))


def run_code(run: Run, statements: Code, keeps_versions: bool) -> tuple[list[World], Start]:
    """Run code of the user before the build of a publication that has started.

    Returns:
        the worlds after each action and statement, and how the publication goes on
    """
    worlds: list[World] = []

    def watch(before: World, after: World, what: str) -> None:
        check_action(before, after, what)
        worlds.append(after)

    facts, wanted = run.observe(), run.intent
    run.code = Coded(keeps_versions, run.world.relation or Table(()), facts.baseline)
    run.watch = watch
    for is_named, effect in statements:
        if is_named:
            run.code.is_touched = None
            run.intent = RunStatement(effect in REPLACING)
            assert run.carry_out() == Done()
        run.world = effect(run.world) or run.world
        worlds.append(run.world)
    run.code.is_touched = None
    run.intent = EndCode(facts.baseline, facts.marked.build)
    end = run.carry_out()
    run.intent = wanted
    if isinstance(end, Rebuild):
        return worlds, end
    assert end == Done()
    baseline = run.observe().baseline
    if run.world.journal:
        assert run.world.rows_of(baseline) == run.world.mirror, f"{statements} is not seen"
    return worlds, Compare(baseline)


def keep_rows(world: World) -> World | None:
    return world


def create_alike(world: World) -> World | None:
    """Create another table, which happens to have as many versions."""
    found = world.relation
    return replace(world, relation=Table((HAND,) * len(found.versions))) if found else None


REPLACING: tuple[Way, ...] = (drop_table, replace_table, create_alike)
EFFECTS: tuple[Way, ...] = (keep_rows, change_rows, replace_rows, *REPLACING)
STATEMENTS = tuple(product((True, False), EFFECTS))
# what the code of a node does, by statements that name the table or do not
CODES: tuple[Code, ...] = (
    *((statement,) for statement in STATEMENTS),
    *product(product((True, False), (change_rows,)), STATEMENTS),
)


def can_take_in_place(run: Run) -> bool:
    facts, intent = run.observe(), run.intent
    if not isinstance(intent, Publish) or intent.full_refresh or run.world.relation is None:
        return False
    return goes_ahead(facts, intent) and may_keep_rows(facts, intent)


def acted(world: World, intent: Intent, mine: str = "", keeps: bool = True) -> list[World]:
    """The worlds after each half of an action, in a run that ends well."""
    found: list[World] = []

    def watch(before: World, after: World, what: str) -> None:
        if keeps:
            check_action(before, after, what)
        found.append(after)

    assert Run(world, intent, mine, watch, taking=LATER).carry_out() == Done()
    return found or [world]


def is_torn(world: World) -> bool:
    """Whether a part of a batch is published, whose manifest was deleted or is superseded.

    Then the files of the folder are not those of the journal, and only a full load is published.
    """
    return world.journal is not None and (world.mirror is None or world.manifest is not None)


def without_manifest(world: World) -> World:
    return replace(world, manifest=None, staged=0, is_lost=False)


def ways_out(world: World, why: Refused) -> list[tuple[World, Intent]]:
    """What the message of a refusal names, each in the world in which it is done."""
    match why:
        case Refused.FILES_LOST if world.staged == 2 and (world.mirror or not world.journal):
            return [(world, FULL), (without_manifest(world), Publish())]
        case Refused.FILES_LOST:
            return [(world, FULL)]
        case Refused.OUT_OF_STEP | Refused.FOREIGN if is_torn(world):
            return [(world, FULL)]
        case Refused.FOREIGN:
            return [(world, FULL), (world, PublishPresent()), (world, ADOPT)]
        case Refused.OUT_OF_STEP if Run(world, Publish()).observe().is_ahead:
            return [(world, FULL), (world, Restore(True))]
        case Refused.OUT_OF_STEP if world.relation:
            return [(world, FULL), (world, PublishPresent()), (world, Restore(True))]
        case Refused.OUT_OF_STEP:
            return [(world, FULL), (world, Restore())]
        case Refused.FOLDER_LOST:
            return [(world, FULL)]
        case Refused.HELD:
            return [(world, PublishHeld())]
        case Refused.COMMITTED:
            return [(world, Recover())]
    return [(world, Publish())]  # run its node


@cache
def check_ways_out(world: World, why: Refused, depth: int = 0) -> None:
    """Each way out of a refusal ends well, or is refused with a way out that does."""
    assert depth < 5, why
    for place, way in ways_out(world, why):
        after, end = whole(place, way)
        if isinstance(end, Refused):
            check_ways_out(after, end, depth + 1)


@cache
def whole(world: World, intent: Intent) -> tuple[World, Start | Done | Refused]:
    """Recover a table, and do what is wanted."""
    replaces = isinstance(intent, Publish) and intent.full_refresh is not None
    run = Run(world, Recover(replaces), watch=check_action)
    end = run.carry_out()
    if isinstance(end, Refused) or isinstance(intent, Recover):
        return run.world, end
    begun, start = begin(run.world, intent)
    if isinstance(start, Refused | Done):
        return begun.world, start
    return list(go_on(begun, start))[-1], start


@cache
def is_right(world: World) -> bool:
    """Whether the mirror has the rows of the relation, or those of before while it is ahead."""
    _, end = begin(world, Publish())
    return isinstance(end, Compare | Rebuild)


# The search


@dataclass
class Search:
    """All worlds, by how they came to be."""

    found: dict[World, str]
    transitions: set[tuple[State, str, State]]
    settled: set[World]
    runs: int = 0

    @classmethod
    def all(cls) -> Search:
        search = cls({}, set(), set())
        left: deque[tuple[World, int, int]] = deque()

        def add(world: World, kills: int, hands: int, name: str) -> None:
            if world not in search.found:
                search.found[world] = name
                left.append((world, kills, hands))

        for name, worlds in runs():
            for number, world in enumerate(worlds):
                add(world, 0, 0, f"{name}, step {number}")
            for killed, step in search.kills(worlds[-1], Recover(), "new"):
                add(killed, 0, 0, f"{name}, killed after {step}")
            for killed, step in search.kills(worlds[-1], Recover(), "publication"):
                add(killed, 0, 0, f"{name}, killed after {step}")
        while left:
            world, kills, hands = left.popleft()
            name = search.found[world]
            if hands < MOST_HANDS:
                for hand in HANDS:
                    if changed := hand(world):
                        add(changed, kills, hands + 1, f"{name}; {hand.__name__}")
            for intent in INTENTS:
                for killed, step in search.kills(world, intent, is_tried=hands < 2):
                    if kills < MOST_KILLS:
                        add(killed, kills + 1, hands, f"{name}; {intent} killed after {step}")
        return search

    def kills(
        self, world: World, intent: Intent, mine: str = "", is_tried: bool = False
    ) -> list[tuple[World, str]]:
        """Let a run end, and return the worlds in which it could have been killed.

        Args:
            is_tried: whether each publication is tried in the world in which it ends
        """
        found: list[tuple[World, str]] = []
        run = Run(world, intent, mine)

        def watch(before: World, after: World, what: str) -> None:
            check_action(before, after, what)
            if intent == Recover():
                self.transitions.add((state_of(before), what, state_of(after)))
            found.append((after, what))

        run.watch = watch
        try:
            move = run.carry_out()
            self.runs += 1
            check_end(run.world, intent, move)
            if isinstance(intent, Recover) and isinstance(move, Refused):
                check_ways_out(run.world, move)
            elif isinstance(intent, Recover) and is_tried:
                self.settled.add(run.world)
        except AssertionError as error:
            name = self.found.get(world, "")
            raise AssertionError(f"{name}; {intent}: {run.steps}\n{world}\n{error}") from error
        return found


@cache
def everything() -> Search:
    return Search.all()


def test_every_run_ends_and_nothing_is_wrong_in_silence() -> None:
    search = everything()

    print(f"{len(search.found)} worlds, {search.runs} runs, {len(search.transitions)} transitions")
    assert len(search.found) > 2000


def test_every_publication_goes_on_or_is_refused_with_a_way_out() -> None:
    """After a kill within it, the next run ends well. A hand may end in a refusal."""
    search, endings, killed, ends_well = everything(), set(), set(), set()
    for world in search.settled:
        is_well = not isinstance(whole(world, Publish())[1], Refused)
        intents: tuple[Intent, ...] = FULL_LOADS if is_torn(world) else PUBLICATIONS
        for intent in intents:
            run, end = begin(world, intent)
            endings.add((type(intent).__name__, end if isinstance(end, Refused) else type(end)))
            if isinstance(end, Refused):
                check_ways_out(run.world, end)
            if isinstance(end, Refused | Done):
                continue
            for in_place in (False, True) if can_take_in_place(run) else (False,):
                *worlds, last = go_on(run, end, in_place)
                assert is_right(last), f"{intent} {world}"
                killed.update(worlds)
                if is_well:
                    ends_well.update(worlds)
    changed = {changed for world in killed for hand in HANDS if (changed := hand(world))}
    held: Intent = PublishHeld()
    runs = [*product(killed | changed, [Publish()]), *product(killed, [held])]
    for world, following in runs:
        after, end = whole(world, following)
        if isinstance(end, Refused):
            assert following is held or world not in ends_well, f"{end} {world}"
            check_ways_out(after, end)

    print(f"{len(search.settled)} settled worlds, {len(killed)} killed, {len(runs)} next runs")
    assert ("Publish", Refused.FOREIGN) in endings


def test_code_before_a_build_never_takes_published_rows_away_in_silence() -> None:
    runs, killed, gone_on = 0, set[World](), set[object]()
    for world in everything().settled:
        for intent in (Publish(), Publish(is_held=True), Publish(has_hooks=True)):
            begun, end = begin(world, intent)
            if not isinstance(end, Compare):
                continue
            has_versions = any(table.noted for table in begun.world.tables)
            for statements, keeps in product(CODES, (True,) if has_versions else (True, False)):
                runs += 1
                run = replace(begun, steps=[])
                worlds, start = run_code(run, statements, keeps)
                killed.update(worlds)
                reason = start.reason if isinstance(start, Rebuild) else None
                how = (run.world, run.rows, reason, intent)
                if how not in gone_on:
                    gone_on.add(how)
                    *others, last = go_on(run, start)
                    assert is_right(last), f"{statements} {world}"
                    killed.update(others)
    for world in killed:
        after, why = whole(world, Publish())
        if isinstance(why, Refused):
            check_ways_out(after, why)

    print(f"{runs} runs with code, {len(killed)} killed")
    assert runs > 1000


def test_a_dry_run_foretells_what_a_run_does() -> None:
    """Or it is refused, because a run would first finish what another one has left."""
    for world in everything().found:
        _, foretold = begin(world, Preview())
        if isinstance(foretold, Refused) and foretold in (Refused.COMMITTED, Refused.MOVED_AWAY):
            _, end = whole(world, Recover())
            assert end == Done() or end is Refused.FILES_LOST
        elif Run(world, Recover()).observe().state is State.SETTLED:
            _, end = begin(world, Publish())
            assert foretold == end, world


def test_every_combination_of_facts_has_a_next_action_that_is_possible() -> None:
    batches = [None, *(Committed("2", "2", *how) for how in product((True, False), repeat=2))]
    kinds = ((NEXT, "1"), (NEXT, "2"), (PUBLISHED, "1"), (PART, "2"), (UNMIRRORED, "3"))
    names = [Beside(*each) for each in kinds]
    beside = [
        [name for name, is_there in zip(names, chosen, strict=True) if is_there]
        for chosen in product((True, False), repeat=len(names))
    ]
    for relation, files, part, batch, recorded, held, tables, is_known in product(
        Relation, Files, Part, batches, "12", (None, Held("1"), Held("2")), beside, (True, False)
    ):
        facts = Facts(
            last="1",
            is_state_kept=is_known,
            recorded=recorded,
            manifest=batch,
            held=held,
            relation=relation,
            beside=tuple(tables),
            files=files,
            part=part,
        )
        for intent in (*INTENTS, GoAhead("2", keeps="1")):
            match next_action(facts, intent):
                case Rename(table):
                    assert table in tables
                    assert relation is Relation.MISSING
                case Drop(table):
                    assert table in tables
                    assert table != Beside(PUBLISHED, "1")
                case Keep() | Step.DROP_RELATION:
                    assert relation is not Relation.MISSING
                case Step.RECORD:
                    assert files is Files.PUBLISHED
                case Step.COMPLETE:
                    assert facts.state is State.RECORDED
                    assert isinstance(intent, Recover)
                case Step():
                    assert isinstance(intent, Recover), "the landing zone is not locked"


ASKED: tuple[dict[str, Any], ...] = (
    {},
    {"rows": Rows.PUBLISHED, "elsewhere": "", "is_touched": False},
    {"rows": Rows.PUBLISHED, "elsewhere": "elsewhere"},
    {"rows": Rows.PUBLISHED, "elsewhere": "", "lost": (Beside(PUBLISHED, "1"),)},
    {"rows": Rows.FOREIGN, "elsewhere": "", "is_touched": True},
    {"version": "3"},
    {"is_view": True},
    {"version": "3", "is_touched": True, "rows": Rows.FOREIGN},
)
STARTS: tuple[Intent, ...] = (
    *PUBLICATIONS,
    *(Preview(), Preview(full_refresh="full_refresh"), Publish(extends=True)),
    *(Settle(), Explain("why"), RunStatement(True), RunStatement(False)),
    *(EndCode(Itself("1"), "1", extends) for extends in (True, False)),
    *(GoAhead("2", Held("2"), keeps="1"), GoAhead("3", Held("3"), "1", in_place=True)),
    GoAhead("3", in_place=True),
)


def test_every_start_of_a_publication_is_possible() -> None:
    unfinished = Held("2", is_finished=False, before="1")
    held = (*((each, False) for each in (None, Held("2", "rebuild"), unfinished)), (None, True))
    marks = [
        Marks(build, noted, is_unmirrored)
        for build in (None, "1", "2")
        for noted in (None, ("1", "0"))
        for is_unmirrored in (True, False)
    ]
    tables = ((), (Beside(PUBLISHED, "1"),), (Beside(NEXT, "2"),))
    for last, (record, is_damaged), marked, relation, beside, asked in product(
        (None, "1"), held, marks, Relation, tables, ASKED
    ):
        facts = Facts(
            last=last,
            held=record,
            is_held_damaged=is_damaged,
            marked=marked,
            relation=relation,
            beside=beside,
            **asked,
        )
        for intent in STARTS:
            check_start(facts, intent, next_action(facts, intent))


def check_start(facts: Facts, intent: Intent, move: Move) -> None:
    is_there, is_rebuilt = facts.relation is Relation.THERE, isinstance(intent, PublishPresent)
    match move:
        case Compare(baseline):
            assert baseline == facts.baseline
            assert facts.published == facts.last
            is_same = facts.is_ahead or not facts.last or facts.rows is Rows.PUBLISHED
            assert is_same
            assert facts.relation is not Relation.LOST
        case Rebuild():
            assert facts.last or is_rebuilt or isinstance(intent, Publish) or facts.held
        case Fetch():
            assert facts.last
            assert isinstance(intent, Restore)
        case Refused.FOREIGN:
            assert facts.rows is Rows.FOREIGN
        case Refused.FOLDER_LOST:
            assert facts.relation is Relation.LOST or facts.lost
        case Refused.RECORD_DAMAGED:
            assert facts.is_held_damaged
        case Note(_, published):
            assert published in (None, "1")
            assert is_there
        case Keep() | Step.UNMIRROR | Step.TAKE_AHEAD | Step.ADOPT | Step.FORGET_VERSION:
            assert is_there
        case Step.COPY:
            assert facts.published
            assert not isinstance(facts.baseline, Kept)
        case Drop(table) | Rename(table):
            assert table in (*facts.beside, *facts.lost)
            is_copy = isinstance(intent, EndCode) and facts.is_touched is False
            is_copy |= table in facts.lost
            assert table != Beside(PUBLISHED, facts.last or "") or is_copy
        case Restate(build):
            assert build != facts.last
        case Look.AT_ROWS:
            assert facts.rows is Rows.UNKNOWN
        case Look.AT_CODE:
            assert facts.is_touched is None


def picture() -> str:
    """The states of a table, and the actions that lead from one to another, for the docs."""
    actions = defaultdict(set)
    for before, what, after in everything().transitions:
        is_scratch = what.startswith("drop") and what != "drop relation"
        actions[before, after].add("drop leftovers" if is_scratch else what)
    lines = [
        "stateDiagram-v2",
        "    settled --> interrupted: build",
        "    interrupted --> committed: commit",
    ]
    for (before, after), found in sorted(actions.items(), key=lambda each: str(each[0])):
        names = before.name.lower(), after.name.lower()
        lines.append(f"    {names[0]} --> {names[1]}: {', '.join(sorted(found))}")
    return "\n".join(lines)


def test_the_docs_show_the_states_as_they_are() -> None:
    page = Path(__file__).parents[3] / "docs" / "contributing" / "how-it-works.md"

    assert f"```mermaid\n{picture()}\n```" in page.read_text(), picture()
