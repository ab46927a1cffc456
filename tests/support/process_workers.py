"""What the programs do that the multi-process tests start. Each puts what happened to it into a queue, errors too."""

from collections.abc import Callable
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier, Event
from typing import Any

from memplane import Caller, Memplane, Settings
from memplane.errors import LimitReached
from memplane.ledger.payloads import TurnPayload, encode
from memplane.types import NewEntry, Op

OWNER = "crowd"
PATIENCE_SECONDS = 120


def run(work: Callable[..., Any], answers: Queue, begin: Barrier, data: str, *arguments: Any) -> None:
    """All begin at once; the answer is what the work returned, or the error it ended with."""
    try:
        with Memplane.open(data, embedder=None, settings=Settings(recall_work_ms=0)) as plane:
            begin.wait(PATIENCE_SECONDS)
            answers.put((work.__name__, work(plane, *arguments), None))
    except BaseException as error:
        answers.put((work.__name__, None, f"{type(error).__name__}: {error}"))
        raise


def write(plane: Memplane, number: int, rounds: int, half: Barrier) -> list[str]:
    """Everything a program may write; answers the ids it was told. In the middle it waits until every reader looked."""
    space = plane.space(OWNER)
    ids, last = [], None
    for turn in range(rounds):
        if turn == rounds // 2:
            half.wait(PATIENCE_SECONDS)
        match turn % 6:
            case 0 | 1:
                ids.append(space.retain(f"lantern w{number}r{turn}", conversation=f"c{number}").id)
            case 2:
                last = space.store("fact", f"lantern w{number}r{turn}", supersedes=last).id
                ids.append(last)
            case 3:
                ids.append(space.put(f"shared/{turn % 4}", f"lantern w{number}r{turn}").id)
            case 4:
                drafts = [
                    _draft(f"load-{number}-{turn}-{n}", f"lantern w{number}r{turn}n{n}") for n in range(5)
                ]
                space.ledger.load(drafts)
                ids += [draft.id for draft in drafts]
            case 5:
                ids.append(space.forget(entries=[ids[0]]).id)
    return ids


def read(plane: Memplane, stop: Event, half: Barrier) -> list[int]:
    """Verify, again and again, that what is there follows from what was there; answers how many entries each look saw.
    The first is over before anybody writes the second half, the last begins after everybody is done."""
    space = plane.space(OWNER)
    looks: list[int] = []
    entries = 0
    seen: dict[int, str] = {}
    last = False
    while not last:
        last = stop.is_set()
        verification = space.ledger.verify(expected=seen)
        assert verification.problems == (), verification.problems
        assert verification.seq == verification.entries >= entries
        found = space.ledger.entries(limit=1_000_000)
        assert [entry.seq for entry in found] == list(range(1, len(found) + 1))
        assert len({entry.id for entry in found}) == len(found)
        entries = verification.entries
        if entries:
            seen[verification.seq] = verification.digest
            assert space.search("lantern") is not None
            space.recall("lantern")
            space.brief()
        looks.append(entries)
        if len(looks) == 1:
            half.wait(PATIENCE_SECONDS)
    return looks


def store_in_session(plane: Memplane, session: str, attempts: int) -> tuple[int, int]:
    """(stored, refused)."""
    space = plane.space(OWNER, caller=Caller(session=session))
    return _count(lambda turn: space.store("fact", f"lantern {turn}"), attempts)


def supersede_in_session(plane: Memplane, session: str, memory_id: str, attempts: int) -> tuple[int, int]:
    space = plane.space(OWNER, caller=Caller(session=session))
    return _count(lambda turn: space.store("fact", f"lantern {turn}", supersedes=memory_id), attempts)


def delete_in_session(plane: Memplane, session: str, memory_ids: list[str]) -> tuple[int, int]:
    space = plane.space(OWNER, caller=Caller(session=session))
    return _count(lambda turn: space.delete(memory_ids[turn]), len(memory_ids))


def _count(attempt: Callable[[int], object], attempts: int) -> tuple[int, int]:
    done = refused = 0
    for turn in range(attempts):
        try:
            attempt(turn)
            done += 1
        except LimitReached:
            refused += 1
    return done, refused


def supersede(plane: Memplane, begin_each: Barrier, memory_ids: list[str], name: str) -> list[str]:
    """Replace every one of these, each at the same moment as everybody else."""
    space = plane.space(OWNER)
    made = []
    for memory_id in memory_ids:
        begin_each.wait(PATIENCE_SECONDS)
        made.append(space.store("correction", f"lantern of {name}", supersedes=memory_id).id)
    return made


def retain_given(plane: Memplane, ids: list[str]) -> list[bool]:
    """Whether each was new."""
    space = plane.space(OWNER)
    return [not space.retain(f"lantern {id_}", id=id_).deduped for id_ in ids]


def create(plane: Memplane, begin_each: Barrier, owners: list[str], name: str) -> list[int]:
    """Write to spaces that nobody has made yet, each at the same moment as everybody else."""
    seqs = []
    for owner in owners:
        begin_each.wait(PATIENCE_SECONDS)
        seqs.append(plane.space(owner).retain(f"lantern of {name}").seq)
    return seqs


def hold_a_snapshot(plane: Memplane, holding: Event, stop: Event) -> tuple[int, int]:
    """How many entries a snapshot shows when it is taken, and when it is given back."""
    with plane.space(OWNER)._context.read() as reader:
        before = len(reader.ledger.entries(limit=1_000_000))
        holding.set()
        assert stop.wait(PATIENCE_SECONDS)
        return before, len(reader.ledger.entries(limit=1_000_000))


def _draft(id_: str, text: str) -> NewEntry:
    return NewEntry(id_, Op.TURN, encode(TurnPayload(role="user", content=text, at=1_790_000_000_000_000)))
