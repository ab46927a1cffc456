"""Machines that share one space through a faulty object store, all of it decided by a seed.

    python tests/support/sync_simulation.py 0 1000        # seeds 0 to 999; the first that fails is shown, and can be run again

Each machine is a real space in a real directory. Requests of machines that sync at the same time interleave in any way:
each waits before every request until it is its turn. Whatever is told carries a word of its own, so that what was kept
and what was forgotten can be looked for everywhere.
"""

import argparse
import random
import re
import shutil
import sys
import threading
import time
import traceback
import uuid
from contextlib import contextmanager
from datetime import timedelta
from unittest.mock import patch

import msgspec

from conftest import HandClock, fresh_folder
from faulty_objects import Crash, FaultyObjects
from memory_objects import MemoryObjects
from memplane import Memplane, Settings
from memplane.errors import InvalidRequest, MemplaneError, RemoteError
from memplane.ledger import ids
from memplane.storage.filter import Filter
from memplane.sync import link as replica
from memplane.sync import push as pushing
from memplane.sync.sync import Sync
from memplane.sync.tree.daily import generated_files
from memplane.types import Caller, Op

OWNER = "alice"
ROUNDS_MAX = 12
WORD = re.compile(rb"word\d+end")
INTERACTION = (
    '{{"id": "{id}", "ts": "2026-11-14T20:00:00+00:00", "channel": "email", "direction": "inbound", '
    '"sender": "bob", "summary": "He said {word}"}}\n'
)


LIKES = "Likes " + "tea with a biscuit, " * 9
"""Longer than what the title, the description and the name of a file are made of: an edit by hand keeps those."""


class Machine:
    """One replica, and the sync that it may be in the middle of."""

    def __init__(self, world, number, folder):
        self.world = world
        self.number = number
        self.folder = folder
        self.skew = timedelta(seconds=world.rng.choice((0, 0, 1, -40, 3600)))
        self.decays = world.decays and (number == 0 or world.rng.random() < 0.5)
        self.syncing = None
        self.open()

    def open(self):
        settings = DECAYING if self.decays else SETTINGS
        self.plane = Memplane.open(self.folder, embedder=None, clock=self.now, settings=settings)
        self.space = self.plane.space(OWNER, caller=Caller(f"m{self.number}", "python"))

    def now(self):
        return self.world.clock() + self.skew // timedelta(microseconds=1)

    def restart(self):
        self.plane.close()
        self.open()

    def sync(self, store):
        world = self.world
        return Sync(self.space, store, self.folder, clock=self.now, pause=lambda _: None, files=world.files)

    def words(self):
        """What the ledger holds."""
        return words_in(b"\n".join(entry.body or b"" for entry in entries_of(self.space)))


SETTINGS = Settings(wipe_now_bytes_max=0)
DECAYING = Settings(wipe_now_bytes_max=0, retention="adr")


class Syncing(threading.Thread):
    """A pull or push that does one request whenever it is told to."""

    def __init__(self, machine, store_of, what, *, look):
        super().__init__(daemon=True)
        self._load_pins = look
        self.machine = machine
        self.outcome = None
        self._turn = threading.Semaphore(0)
        self._waits = threading.Semaphore(0)
        self.store = store_of(self._before_request)
        self._what = what
        self.start()
        self._waits.acquire()

    def _before_request(self):
        self._waits.release()
        self._turn.acquire()

    def run(self):
        try:
            sync = self.machine.sync(self.store)
            getattr(sync, self._what)(look=self._load_pins)
            self.outcome = "done"
        except Crash:
            self.outcome = "crashed"
        except (RemoteError, MemplaneError) as exc:
            self.outcome = exc if not isinstance(exc, RemoteError) else "failed"
        except BaseException as exc:  # noqa: BLE001 - told by whoever waits for it
            self.outcome = exc
        finally:
            self._waits.release()

    def step(self):
        """One request; whether it is over."""
        self._turn.release()
        self._waits.acquire()
        return self.outcome is not None


class World:
    """A seed's machines, and what was said and forgotten in it."""

    def __init__(self, seed, folder, template):
        self.rng = random.Random(seed)
        self.clock = HandClock()
        self.objects = MemoryObjects()
        self.told = {}
        self.forgotten = set()
        self.forgotten_ids = set()
        self.decayed = set()
        self.log = []
        self.machines = []
        self._numbers = 0
        self._folder, self._template = folder, template
        self.trouble = self.rng.choice((0.0, 0.05, 0.2))
        self.crash = self.rng.choice((0.0, 0.03, 0.1))
        self.files = self.rng.random() < 0.5
        self.decays = self.rng.random() < 0.4
        """Days pass, and some machines keep to a retention policy."""
        self._lengths = (0, 0.001, 1, 30, 700, 4_000, *((86_400, 200_000, 500_000) if self.decays else ()))
        for number in range(self.rng.choice((2, 2, 3, 4))):
            self.add_machine(number)

    def add_machine(self, number):
        folder = self._folder / f"m{number}"
        shutil.copytree(self._template, folder)
        self.machines.append(Machine(self, number, folder))

    def close(self):
        for machine in self.machines:
            machine.plane.close()

    # ── what happens ─────────────────────────────────────────────────────────────────────────────────────────────

    def run(self):
        for _ in range(self.rng.randrange(10, 60)):
            self.clock.advance(seconds=self.rng.choice(self._lengths))
            machine = self.rng.choice(self.machines)
            if machine.syncing is not None:
                self.step(machine)
            elif self.rng.random() < 0.4:
                self.start(machine)
            else:
                self.change(machine)
            if machine.syncing is not None and self.rng.random() < 0.15:
                self.change(machine)  # the machine goes on being used while it syncs
        while busy := [machine for machine in self.machines if machine.syncing is not None]:
            self.step(self.rng.choice(busy))
        self.settle()
        if self.decays:
            self.clock.advance(days=9)
            for machine in self.machines:
                self.note(machine, f"compacts at last {self.compact(machine)}")
            self.settle()

    def start(self, machine):
        what, look = self.rng.choice(("push", "push", "pull")), self.rng.random() < 0.3
        self.note(machine, f"{what} {'and looks' if look else ''}")

        def store_of(before_request):
            return FaultyObjects(
                self.objects, self.rng, trouble=self.trouble, crash=self.crash, before_request=before_request
            )

        machine.syncing = Syncing(machine, store_of, what, look=look)
        self.ended(machine, over=machine.syncing.outcome is not None)

    def step(self, machine):
        self.ended(machine, over=machine.syncing.step())

    def ended(self, machine, *, over):
        if not over:
            return
        outcome = machine.syncing.outcome
        machine.syncing.join()
        machine.syncing = None
        self.note(machine, f"… {outcome}")
        if isinstance(outcome, BaseException):
            raise outcome
        if outcome == "crashed":
            machine.restart()

    def settle(self):
        """Everybody syncs, without trouble, until nobody has anything to say."""
        for _ in range(ROUNDS_MAX):
            self.clock.advance(timedelta(microseconds=2 * pushing.GRACE))
            quiet = True
            for machine in self.machines:
                pushed = machine.sync(self.objects).push(look=True)
                self.note(machine, f"settles: {brief(pushed)}")
                assert not pushed.taken.damaged
                quiet = quiet and pushed.idle
            if quiet:
                return
        raise AssertionError(f"not quiet after {ROUNDS_MAX} rounds")

    def note(self, machine, what):
        self.log.append(f"m{machine.number}: {what}")

    # ── what is said and forgotten ───────────────────────────────────────────────────────────────────────────────

    def word(self):
        self._numbers += 1
        return f"word{self._numbers}end"

    def change(self, machine):
        action = self.rng.choice(
            (
                *(self.retain, self.retain, self.collide, self.store, self.supersede, self.put, self.put),
                *(self.forget, self.sweep, self.purge, self.again, self.edit, self.edit),
                *((self.compact, self.compact, self.remark, self.remark) if self.decays else ()),
            )
        )
        try:
            said = action(machine)
        except InvalidRequest as exc:
            said = f"refused: {exc}"
        self.note(machine, f"{action.__name__} {said}")

    def retain(self, machine):
        word = self.word()
        kept = machine.space.retain(f"I said {word}", conversation=self.rng.choice((None, "c1", "c2")))
        self.told[word] = kept.id
        return word

    def remark(self, machine):
        """Something that compaction keeps: a fact, or how to act."""
        word = self.word()
        said = self.rng.choice(
            ("My friend {} lives in Lisbon.", "I prefer {} over email.", "We decided to use {}.")
        )
        self.told[word] = machine.space.retain(
            said.format(word), conversation=self.rng.choice((None, "c2"))
        ).id
        return word

    def compact(self, machine):
        """What goes with a day is nobody's forget; what stays of it, others may forget."""
        stones = {stone.id for stone in machine.space.ledger.tombstones()}
        report = machine.space.compact()
        self.decayed |= {stone.id for stone in machine.space.ledger.tombstones()} - stones
        return [day.day for day in report.days]

    def collide(self, machine):
        """The same id on several machines, with a body of its own on each."""
        word, id_ = self.word(), f"shared-{self.rng.randrange(3)}"
        kept = machine.space.retain(f"I said {word}", id=id_, conversation="c1")
        if not kept.deduped and not kept.suppressed:
            self.told[word] = id_
        return f"{id_} {word} {kept}"

    def again(self, machine):
        """The same id and the same words, as two machines that were told the same thing have it."""
        number = self.rng.randrange(3)
        word, id_ = f"word{9_000 + number}end", f"again-{number}"
        kept = machine.space.retain(f"They said {word}", id=id_)
        if not kept.deduped and not kept.suppressed:
            self.told[word] = id_
        return f"{id_} {kept}"

    def store(self, machine):
        word = self.word()
        self.told[word] = machine.space.store("preference", f"{LIKES} {word}").id
        return word

    def supersede(self, machine):
        known = [entry.id for entry in entries_of(machine.space) if entry.op is Op.STORE]
        if not known:
            return "nothing"
        word, old = self.word(), self.rng.choice(known)
        self.told[word] = machine.space.store("preference", f"{LIKES} {word}", supersedes=old).id
        return f"{word} over {old}"

    def put(self, machine):
        word, key = self.word(), self.rng.choice(("k/1", "k/2", "k/3"))
        ttl = self.rng.choice((None, None, 3_600))
        self.told[word] = machine.space.put(key, word, ttl=ttl).id
        return f"{key} {word} {ttl}"

    def forget(self, machine):
        what = self.rng.choice(("entry", "entry", "key", "conversation"))
        if what == "entry":
            entries = entries_of(machine.space)
            if not entries:
                return "nothing"
            scope = {"entries": [self.rng.choice(entries).id]}
        else:
            scope = {"key": "k/1"} if what == "key" else {"conversation": "c2"}
        return f"{scope}: {self.erased(machine, lambda: machine.space.forget(**scope))}"

    def edit(self, _machine):
        """Somebody writes a file by hand, or another program does."""
        if not self.files:
            return "nothing"
        word = self.word()
        what = self.rng.choice(("new", "edit", "edit", "line"))
        if what == "new":
            self.objects.put(f"behavioral/note-{self._numbers}.md", f"{LIKES} {word}\n".encode())
            self.told[word] = f"note-{self._numbers}"
        elif what == "line":
            line = INTERACTION.format(id=f"line-{self._numbers}", word=word)
            got = self.objects.get("interactions/2026-11-14.jsonl")
            self.objects.put("interactions/2026-11-14.jsonl", (got.data if got else b"") + line.encode())
            self.told[word] = f"line-{self._numbers}"
        else:
            there = [
                item.key
                for item in self.objects.list("behavioral/")
                if "MEMORY" not in item.key and not self.is_touched(item.key)
            ]
            if not there:
                return "nothing"
            key = self.rng.choice(there)
            # Whoever forgets what stood there before may take this along, so only agreement is asked for. The old words
            # go: who writes them again, while another forgets them, has said them again.
            before = self.objects.get(key).data
            for gone in words_in(before):
                if self.told.get(gone, "").startswith("note-"):
                    del self.told[gone]  # written over by hand, perhaps before any machine has seen it
            head, rule, _ = before.rpartition(b"---\n")
            self.objects.put(key, head + rule + f"{LIKES} {word}\n".encode())
            return f"{key} {word}"
        return f"{what} {word}"

    def is_touched(self, key):
        """Whether a machine has just looked at it to see whether it may be removed: there is no conditional delete."""
        return any(
            machine.syncing is not None and machine.syncing.store.last_key == key for machine in self.machines
        )

    def sweep(self, machine):
        return self.erased(machine, machine.space.facts.sweep)

    def purge(self, machine):
        return machine.space.purge(0) if self.rng.random() < 0.3 else "not now"

    def erased(self, machine, work):
        """What is gone after it that was there before."""
        before = machine.words()
        stones = {stone.id for stone in machine.space.ledger.tombstones()}
        work()
        gone = before - machine.words()
        self.forgotten |= gone
        self.forgotten_ids |= {stone.id for stone in machine.space.ledger.tombstones()} - stones
        return gone

    # ── what must hold ───────────────────────────────────────────────────────────────────────────────────────────

    def check(self):
        first, *others = [view(machine) for machine in self.machines]
        for machine, other in zip(self.machines[1:], others, strict=True):
            for part, mine in first.items():
                if part == "made" and not machine.decays:
                    continue  # how long summaries are told is for each to say
                assert mine == other[part], (
                    f"m0 and m{machine.number} differ in {part}:\n{difference(mine, other[part])}"
                )
        here = self.machines[0].words()
        there = set()
        for listed in self.objects.list():
            there |= words_in(self.objects.get(listed.key).data)
        kept = {word for word, id_ in self.told.items() if not self.gone(word, id_)}
        assert kept - here == set(), "lost"
        assert kept - there == set(), "not in the store"
        for machine in self.machines:
            assert machine.words() & self.forgotten == set(), f"back on m{machine.number}"
        assert there & self.forgotten == set(), "back in the store"
        assert here == there
        if self.decays:
            assert not [it.key for it in self.objects.list("interactions/")], "a raw day is in the store"
        for machine in self.machines:
            assert not self.decays or not machine.space.turns(), f"a raw day is on m{machine.number}"
            verified = machine.space.ledger.verify()
            assert verified.ok, verified.problems

    def gone(self, word, id_):
        return word in self.forgotten or id_ in self.forgotten_ids or id_ in self.decayed


def brief(result):
    """Only what there was to do."""
    done = msgspec.to_builtins(result)
    return {part: {k: v for k, v in done[part].items() if v} for part in done if part != "url" and done[part]}


def entries_of(space):
    found, after = [], 0
    while more := space.ledger.entries(after=after):
        found += more
        after = more[-1].seq
    return found


def words_in(data):
    return {word.decode() for word in WORD.findall(data)}


def view(machine):
    """What a machine remembers, without what only concerns itself."""
    space = machine.space
    space.ledger.catch_up()
    entries = entries_of(space)
    bodies = {entry.id: entry.body for entry in entries}
    with space._context.read() as reader:
        where = Filter(now=0, include_superseded=True, include_reserved=True, audience=None)
        memories = reader.memories.find(where, limit=10_000)
        turns = reader.turns.find(where, limit=10_000)
    return {
        "entries": [
            (entry.id, entry.op, entry.recorded, entry.body)
            for entry in entries
            if entry.body and not is_repeat(entry, bodies)
        ],
        # Of two forgotten bodies under one id either header is kept; what a forgotten entry replaced must be known.
        "erased": sorted((entry.id, entry.ref) for entry in entries if not entry.body and entry.ref),
        # Those that follow from another are set where there is something to bury, and say nothing that it does not.
        "tombstones": sorted({stone.id for stone in space.ledger.tombstones() if stone.cause is None}),
        "memories": sorted(
            (it.id, it.text, it.state.value, it.tier.value, it.key or "", it.superseded_by or "")
            for it in memories
        ),
        "turns": sorted((it.entry_id, it.ordinal, it.text) for it in turns),
        "digests": [(it.id, it.text) for it in space.overview.digest_lines()],
        "learnings": [(it.ids, it.text, it.standing) for it in space.review.drafts()],
        "made": dict(generated_files(space)) if machine.decays else {},
    }


def is_repeat(entry, bodies):
    """Whether a machine had it before it learned that another one was first to record the same: it is shown nowhere."""
    base = ids.original_id(entry.id, entry.body)
    again = bodies.get(base) == entry.body or entry.id != ids.variant_id(base, entry.body)
    return base != entry.id and again


def difference(left, right):
    if isinstance(left, dict):
        left, right = sorted(left.items()), sorted(right.items())
    return "\n".join(
        [f"  - {one!r}" for one in left if one not in right]
        + [f"  + {one!r}" for one in right if one not in left]
    )


@contextmanager
def ids_from(rng):
    """New ids follow from the seed too: what has the same time is ordered by them."""
    with (
        patch.object(ids, "random_bytes", rng.randbytes),
        patch.object(replica, "random_bytes", rng.randbytes),
        patch.object(ids.uuid, "uuid4", lambda: uuid.UUID(bytes=rng.randbytes(16), version=4)),
    ):
        yield


def make_template(folder):
    with Memplane.open(folder, embedder=None, settings=SETTINGS) as plane:
        plane.space(OWNER).overview.stats()
    return folder


def simulate(seed, template):
    """One seed; raises `AssertionError` with what happened."""
    with fresh_folder() as folder, ids_from(random.Random(-seed)):
        world = World(seed, folder, template)
        try:
            world.run()
            world.check()
        except BaseException as exc:
            told = "\n".join(world.log)
            why = exc if isinstance(exc, AssertionError) else "".join(traceback.format_exception(exc))
            raise AssertionError(f"seed {seed}: {why}\n{told}") from exc
        finally:
            world.close()
        return len(world.log)


def main():
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("first", type=int)
    asked.add_argument("last", type=int, nargs="?")
    given = asked.parse_args()
    last = given.first + 1 if given.last is None else given.last
    started, failed = time.monotonic(), []
    with fresh_folder() as folder:
        template = make_template(folder / "template")
        for seed in range(given.first, last):
            try:
                simulate(seed, template)
            except AssertionError as exc:
                failed.append(seed)
                if len(failed) == 1:
                    sys.stdout.write(f"{exc}\n")
                    sys.stdout.flush()
    seconds = time.monotonic() - started
    sys.stdout.write(f"{last - given.first} seeds, {len(failed)} failed {failed[:20]}, {seconds:.1f} s\n")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
