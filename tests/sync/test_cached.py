"""The cached backend: what it asks the store, what it keeps when the store is away, and that nothing is sent twice."""

import json
import threading
import uuid
from contextlib import ExitStack
from functools import partial

import pytest
from benchmarks.counting import Counting
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from conftest import HandClock, fresh_folder
from memory_objects import MemoryObjects
from memplane.errors import InvalidRequest, RemoteDenied, RemoteUnavailable
from memplane.sync import manifest
from memplane.sync.backend import RemoteBackend, TextBackend
from memplane.sync.cached import CachedBackend
from memplane.sync.local import LocalObjects

DAY = "interactions/2026-04-17.jsonl"


class Moody:
    """A store that is away (`error`), loses the answers to so many writes (`lost`), or lets something else happen before it
    answers (`after`)."""

    def __init__(self, store):
        self._store = store
        self.error = None
        self.lost = 0
        self._happens = {}

    def after(self, name, key, happens):
        """Once: when the next such call for that key has been carried out, and before it is answered."""
        self._happens[name] = (key, happens)

    def __getattr__(self, name):
        if self.error is not None and name in {"get", "put", "delete", "list"}:
            raise self.error
        if name == "put" and self.lost:
            return self._put_and_lose
        return partial(self._interrupted, name) if name in self._happens else getattr(self._store, name)

    def _interrupted(self, name, key, *arguments, **options):
        answer = getattr(self._store, name)(key, *arguments, **options)
        if self._happens.get(name, ("",))[0] == key:
            self._happens.pop(name)[1]()
        return answer

    def _put_and_lose(self, key, data, **options):
        self.lost -= 1
        self._store.put(key, data, **options)
        raise RemoteUnavailable("the answer was lost")


@pytest.fixture
def counting():
    return Counting(MemoryObjects())


@pytest.fixture
def moody(counting):
    return Moody(counting)


@pytest.fixture
def opened(moody, clock, tmp_path):
    """Opens caches of one store: machines by their names, and processes of a machine."""

    def open_one(machine="here", **options):
        return CachedBackend(moody, tmp_path / machine, clock=clock, pause=lambda _: None, **options)

    return open_one


def line(text):
    return json.dumps({"id": str(uuid.uuid4()), "summary": text}) + "\n"


@pytest.fixture(params=["local", "remote", "cached"])
def backend(request, tmp_path, opened):
    if request.param == "local":
        return RemoteBackend(LocalObjects(tmp_path / "root"))
    return RemoteBackend(MemoryObjects()) if request.param == "remote" else opened()


def test_what_every_backend_does(backend):
    """
    Text is read as it was written, grows with what is appended, and is listed by prefix; what is not there is None.
    """
    assert isinstance(backend, TextBackend)
    assert backend.read_text("a/b.md") is None
    assert not backend.exists("a/b.md")
    assert backend.list() == []
    backend.write_text("a/b.md", "eins\r\nzwei 🦀")
    backend.append_text("a/b.md", "\ndrei")
    backend.append_text(DAY, "{}\n")

    assert backend.read_text("a/b.md") == "eins\r\nzwei 🦀\ndrei"
    assert backend.read_text(DAY) == "{}\n"
    assert backend.exists(DAY)
    assert [key for key in backend.list() if key != manifest.KEY] == ["a/b.md", DAY]
    assert backend.list("interactions/") == [DAY]
    backend.write_text("a/b.md", "")
    assert backend.read_text("a/b.md") == ""
    with pytest.raises(InvalidRequest):
        backend.write_text("../out", "x")
    with pytest.raises(InvalidRequest):
        backend.append_text("a", "\ud800")


def test_an_append_is_never_lost_to_another(tmp_path):
    """
    Threads that append to one text of one store, each with the same words, all have theirs in it.
    """
    store = LocalObjects(tmp_path)

    def work():
        for _ in range(10):
            RemoteBackend(store, pause=lambda _: None).append_text("log", "the same words\n")

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert RemoteBackend(store).read_text("log") == "the same words\n" * 40


def test_unchanged_files_cost_nothing(opened, counting, clock):
    """
    A hundred files that did not change cost the one request for the manifest, and not even that within five seconds.
    """
    with opened("there") as there:
        for number in range(100):
            there.write_text(f"behavioral/{number}.md", str(number))
    here = opened()
    assert here.read_text("behavioral/7.md") == "7"
    texts = [here.read_text(f"behavioral/{number}.md") for number in range(100)]
    counting.reset()
    clock.advance(seconds=6)

    assert [here.read_text(f"behavioral/{number}.md") for number in range(100)] == texts
    assert dict(counting.requests) == {"unchanged": 1}
    counting.reset()
    again = opened()
    clock.advance(seconds=1)
    assert again.read_text("behavioral/9.md") == "9"
    assert dict(counting.requests) == {"unchanged": 1}


def test_a_file_is_pulled_when_it_is_read(opened, counting, clock):
    """
    What others changed is fetched on the next read of it, and nothing else is.
    """
    here, there = opened(), opened("there")
    for number in range(10):
        there.write_text(f"k{number}", "old")
        assert here.read_text(f"k{number}") == "old"
    there.write_text("k3", "new")
    clock.advance(seconds=6)
    counting.reset()

    assert [here.read_text(f"k{number}") for number in (2, 3, 4)] == ["old", "new", "old"]
    assert dict(counting.requests) == {"get": 2}  # the manifest and k3


def test_a_write_costs_two_requests(opened, counting):
    """
    Writing or appending to what is known here is one request for the object and one for the manifest.
    """
    here = opened()
    here.write_text("k", "1")
    counting.reset()

    here.write_text("k", "2")
    here.append_text("k", "3")
    assert dict(counting.requests) == {"put": 4}
    assert here.read_text("k") == "23"


def test_interactions_are_sent_together(opened, counting, clock, moody):
    """
    Appends to interactions wait for five seconds, or until there are 4 KB of them; they are read here at once.
    """
    here = opened()
    here.append_text(DAY, "1\n")
    clock.advance(seconds=4.9)
    here.append_text(DAY, "2\n")

    assert here.read_text(DAY) == "1\n2\n"
    assert moody.get(DAY) is None
    clock.advance(seconds=0.1)
    here.tend()
    assert moody.get(DAY).data == b"1\n2\n"
    here.append_text(DAY, "x" * 4_095)
    assert moody.get(DAY).data == b"1\n2\n"
    here.append_text(DAY, "y")
    assert len(moody.get(DAY).data) == 4 + 4_096
    here.append_text(DAY, "the end")
    here.close()
    assert moody.get(DAY).data.endswith(b"ythe end")


def test_entries_of_the_manifest_may_wait(opened, counting, clock):
    """
    With `manifest_s`, writes change the manifest together; here they are listed and read at once, without a request.
    """
    here = opened(manifest_s=5)
    here.list()
    counting.reset()
    for number in range(3):
        here.write_text(f"k{number}", str(number))
    assert here.list() == ["k0", "k1", "k2"]
    assert here.read_text("k1") == "1"

    assert dict(counting.requests) == {"put": 3}
    assert here.state().pending == 3
    clock.advance(seconds=5)
    here.tend()
    assert dict(counting.requests) == {"put": 4}
    assert here.state().pending == 0
    assert sorted(manifest.read(counting)[0].entries) == ["k0", "k1", "k2"]


def test_an_entry_that_waits_survives_the_process(opened, counting, moody, clock):
    """
    The next process on the machine lists what was sent, even where the manifest was out of reach meanwhile.
    """
    opened(manifest_s=5).write_text("k", "1")
    moody.error = RemoteUnavailable("away")
    again = opened(manifest_s=5)
    again.flush()
    assert again.state().pending == 1
    moody.error = None

    opened().tend()

    assert manifest.read(counting)[0].entries["k"].size == 1


def test_what_the_caller_wrote_is_adopted(opened, counting, clock):
    """
    An object that was put into the store by other means is read without a request, and listed.
    """
    here = opened()
    version = counting.put("k", b"by other means")
    here.adopt("k", b"by other means", version)
    counting.reset()

    assert here.read_text("k") == "by other means"
    assert counting.requests["get"] == 0
    assert manifest.read(counting)[0].entries["k"].size == 14


def test_the_object_decides_where_two_machines_list_it(opened, counting, clock):
    """
    A machine that lists its write late does not overwrite the entry of a machine that wrote after it.
    """
    here, there = opened(manifest_s=5), opened("there")
    here.write_text("k", "here")
    there.write_text("k", "over there")
    here.flush()
    clock.advance(seconds=6)

    assert manifest.read(counting)[0].entries["k"].size == len("over there")
    assert here.read_text("k") == "over there"


def test_two_machines_append(opened, clock):
    """
    Two machines that append to one day have all of it, each in its own order.
    """
    here, there = opened(), opened("there")
    for number in range(5):
        here.append_text(DAY, line(f"here {number}"))
        there.append_text(DAY, line(f"there {number}"))
        clock.advance(seconds=2)
    here.close()
    there.close()
    clock.advance(seconds=6)

    said = [json.loads(text)["summary"] for text in here.read_text(DAY).splitlines()]
    assert [text for text in said if "t" not in text] == [f"here {number}" for number in range(5)]
    assert sorted(said) == sorted(f"{where} {number}" for where in ("here", "there") for number in range(5))
    assert here.read_text(DAY) == there.read_text(DAY)


@pytest.mark.parametrize("error", [RemoteUnavailable("no connection"), RemoteDenied("the token has expired")])
def test_without_a_connection(opened, moody, clock, error):
    """
    While the store is away, reads are answered from the copy and say so, writes wait, and all of it is made up for.
    """
    here = opened()
    here.write_text("known", "1")
    here.write_text("other", "x")
    there = opened("there")
    moody.error = error
    clock.advance(seconds=6)
    assert here.read_text("known") == "1"
    here.append_text("known", "2")
    here.write_text("new", "n")
    here.append_text(DAY, line("offline"))
    clock.advance(seconds=100)

    assert here.read_text("known") == "12"
    assert here.read_text("never") is None
    assert here.list() == [DAY, "known", "new", "other"]
    assert here.exists("new")
    assert here.state().offline
    assert here.state().problem == str(error)
    assert here.state().pending > 0
    assert opened().read_text("new") == "n"
    with pytest.raises(RemoteUnavailable):
        there.read_text("known")

    moody.error = None
    clock.advance(seconds=120)
    here.tend()
    assert not here.state().offline
    assert here.state().pending == 0
    assert there.read_text("known") == "12"
    assert there.read_text("new") == "n"
    assert there.list() == [DAY, "known", "new", "other"]


def test_a_store_that_is_away_is_not_asked_all_the_time(opened, moody, counting, clock):
    """
    After a failure, calls go without the store for a while.
    """
    here = opened()
    here.write_text("k", "1")
    moody.error = RemoteUnavailable("away")
    clock.advance(seconds=6)
    here.read_text("k")
    moody.error = None
    counting.reset()
    assert here.read_text("k") == "1"

    assert counting.total == 0
    clock.advance(seconds=2)
    here.read_text("k")
    assert counting.total == 1


@pytest.mark.parametrize("text", ["the same words\n", None])
def test_a_lost_answer_is_no_second_copy(opened, moody, clock, text):
    """
    An append whose answer was lost is found in the object, by its place or its ids, even behind what others appended.
    """
    here, there = opened(), opened("there")
    there.append_text("log.txt", "first\n")
    said = text or line("mine")
    moody.lost = 1
    here.append_text("log.txt", said)
    there.append_text("log.txt", "theirs\n")
    clock.advance(seconds=120)

    assert here.read_text("log.txt") == f"first\n{said}theirs\n"
    here.flush()
    clock.advance(seconds=6)
    assert here.read_text("log.txt") == there.read_text("log.txt") == f"first\n{said}theirs\n"
    assert here.state().pending == 0


def test_what_is_sent_and_not_settled_is_shown_once(opened, moody, clock):
    """
    A batch that is in the object while its files are still here, the manifest being out of reach, is not shown twice.
    """
    here = opened()
    here.write_text("log.txt", "first\n")
    moody.lost = 2
    here.append_text("log.txt", "mine\n")
    clock.advance(seconds=70)
    shown = here.read_text("log.txt")

    assert here.state().pending > 0
    assert shown == here.read_text("log.txt") == opened().read_text("log.txt") == "first\nmine\n"


def test_reading_while_another_process_sends(opened, moody):
    """
    Who reads between a write and what is noted of it sees the words once, and does not wait.
    """
    here, beside = opened(), opened(validate="each")
    here.write_text("log.txt", "first\n")
    seen = []
    moody.after("put", "log.txt", lambda: seen.append(beside.read_text("log.txt")))
    here.append_text("log.txt", "mine\n")

    assert seen == ["first\nmine\n"]
    assert here.read_text("log.txt") == beside.read_text("log.txt") == "first\nmine\n"


def test_a_slow_read_does_not_undo_a_write(opened, moody):
    """
    What was fetched before another process appended does not take the place of the newer copy.
    """
    here, beside = opened(), opened(validate="each")
    here.write_text("log.txt", "first\n")
    moody.put("log.txt", b"second\n")
    moody.after("get", "log.txt", lambda: here.write_text("log.txt", "third\n"))
    beside.read_text("log.txt")
    moody.error = RemoteUnavailable("away")

    assert here.read_text("log.txt") == "third\n"
    assert beside.read_text("log.txt") == "third\n"


def test_the_last_writer_wins_and_the_other_text_is_kept(opened, moody, clock, tmp_path):
    """
    A text written offline replaces what another machine wrote meanwhile, which is set aside here.
    """
    here, there = opened(), opened("there")
    here.write_text("k", "old")
    moody.error = RemoteUnavailable("away")
    here.write_text("k", "mine")
    moody.error = None
    there.write_text("k", "theirs")
    clock.advance(seconds=120)
    here.flush()

    assert there.read_text("k") in {"theirs", "mine"}
    clock.advance(seconds=6)
    assert there.read_text("k") == "mine"
    kept = [path.read_text() for path in (tmp_path / "here/conflicts").iterdir()]
    assert sorted(kept) == ["k", "theirs"]


def test_what_the_manifest_does_not_know(opened, counting, clock):
    """
    What somebody put there without telling the manifest is read, read anew when it changes, and gone when it is gone.
    """
    here = opened()
    here.write_text("k", "1")
    counting.put("behavioral/by_hand.md", b"one")
    assert here.read_text("behavioral/by_hand.md") == "one"
    counting.put("behavioral/by_hand.md", b"two")
    assert here.read_text("behavioral/by_hand.md") == "two"
    counting.delete("behavioral/by_hand.md")
    assert here.read_text("behavioral/by_hand.md") is None
    counting.put("k", b"by clock")

    assert here.read_text("k") == "1"
    each = opened("each", validate="each")
    assert each.read_text("k") == "by clock"
    assert each.list() == ["k"]


def test_a_place_without_a_manifest_gets_one(opened, counting):
    """
    A container that others filled is listed once, and read by the manifest from then on.
    """
    counting.put("claude_memory/MEMORY.md", b"# Memory")
    counting.put("promises.jsonl", b"")
    here = opened()

    assert here.list() == ["claude_memory/MEMORY.md", "promises.jsonl"]
    assert here.read_text("claude_memory/MEMORY.md") == "# Memory"
    found, _ = manifest.read(counting)
    assert found.entries["claude_memory/MEMORY.md"].size == 8
    counting.reset()
    assert here.read_text("claude_memory/MEMORY.md") == "# Memory"
    assert counting.total == 0


def test_a_damaged_manifest_stops_nobody(opened, counting, clock):
    """
    With a manifest that cannot be read, each file is asked for, and the state says what is wrong.
    """
    here = opened()
    here.write_text("k", "1")
    counting.put(manifest.KEY, b"{ broken")
    clock.advance(seconds=6)

    assert here.read_text("k") == "1"
    here.write_text("k", "2")
    assert here.read_text("k") == "2"
    assert "damaged" in here.state().problem
    assert here.list() == ["k"]
    assert counting.get(manifest.KEY).data == b"{ broken"


def test_what_the_store_refuses_does_not_wait_for_ever(tmp_path, clock):
    """
    A text that can never be kept is an error at once, is set aside, and is in nobody's way.
    """
    here = CachedBackend(LocalObjects(tmp_path / "store"), tmp_path / "cache", clock=clock)
    here.write_text("a", "a file")
    with pytest.raises(InvalidRequest):
        here.write_text("a/b", "needs a folder")
    here.write_text("c", "fine")

    assert here.state().pending == 0
    assert here.read_text("a/b") is None
    assert "needs a folder" in [path.read_text() for path in (tmp_path / "cache/conflicts").iterdir()]


def test_a_half_written_line_was_never_acknowledged(opened, moody, tmp_path):
    """
    What a process had not finished writing when it was killed is dropped, and spoils nothing that comes after it.
    """
    here = opened()
    here.append_text(DAY, "one\n")
    (waiting,) = (tmp_path / "here/ahead").iterdir()
    with waiting.open("ab") as file:
        file.write(b'{"key":"interactions/2026-04-17.jsonl","do":"app')
    here = opened()
    here.append_text(DAY, "two\n")
    here.close()

    assert moody.get(DAY).data == b"one\ntwo\n"


class Telling:
    """A store that says when the manifest was put."""

    def __init__(self, store, done):
        self._store, self._done = store, done
        self.url = store.url
        self.get, self.delete, self.list = store.get, store.delete, store.list

    def put(self, key, data, **options):
        version = self._store.put(key, data, **options)
        if key == manifest.KEY:
            self._done.set()
        return version


def test_the_thread_sends_what_nobody_asks_for(tmp_path, clock):
    """
    With a thread in the background, a batch is sent though nothing more is called.
    """
    store = MemoryObjects()
    done = threading.Event()

    with CachedBackend(Telling(store, done), tmp_path, background=True, clock=clock) as here:
        here.append_text(DAY, "by itself\n")
        assert store.get(DAY) is None
        clock.advance(seconds=5)
        assert done.wait(30)

    assert store.get(DAY).data == b"by itself\n"


def test_the_thread_outlives_what_nobody_foresaw(tmp_path, clock, monkeypatch):
    """
    It is said, what waits is on disk, and the next tick sends it.
    """
    monkeypatch.setattr("memplane.sync.cached._TICK_S", 0.01)
    store, said, done = MemoryObjects(), [], threading.Event()

    class Unwell(Telling):
        def put(self, key, data, **options):
            if not said:
                said.append(key)
                raise OSError("for once")
            return super().put(key, data, **options)

    with CachedBackend(Unwell(store, done), tmp_path, background=True, clock=clock) as here:
        here.append_text(DAY, "all the same\n")
        clock.advance(seconds=5)
        assert done.wait(30)
        assert here.state().problem == "OSError"

    assert said == [DAY]
    assert store.get(DAY).data == b"all the same\n"


class Machines(RuleBasedStateMachine):
    """Machines that append, go away, come back and lose answers, against what they acknowledged."""

    @initialize()
    def begin(self):
        self.around = ExitStack()
        self.folder = self.around.enter_context(fresh_folder())
        self.store = MemoryObjects()
        self.clock = HandClock()
        self.lines = []
        self.stores = {name: Moody(self.store) for name in "ab"}
        self.machines = {name: self.open(name) for name in "ab"}

    def open(self, name):
        return CachedBackend(self.stores[name], self.folder / name, clock=self.clock, pause=lambda _: None)

    @rule(name=st.sampled_from("ab"), with_id=st.booleans(), batched=st.booleans())
    def append(self, name, with_id, batched):
        text = line(len(self.lines)) if with_id else f"{name} {len(self.lines)}\n"
        key = DAY if batched else "log"
        self.machines[name].append_text(key, text)
        self.lines.append((key, text))
        assert text in self.machines[name].read_text(key)

    @rule(name=st.sampled_from("ab"), lost=st.integers(0, 3))
    def lose(self, name, lost):
        self.stores[name].lost = lost

    @rule(name=st.sampled_from("ab"), away=st.booleans())
    def go(self, name, away):
        self.stores[name].error = RemoteUnavailable("away") if away else None

    @rule(seconds=st.sampled_from([1, 6, 70]))
    def wait(self, seconds):
        self.clock.advance(seconds=seconds)

    @rule(name=st.sampled_from("ab"))
    def restart(self, name):
        self.machines[name] = self.open(name)

    @rule()
    def settle(self):
        for name, machine in self.machines.items():
            self.stores[name].error, self.stores[name].lost = None, 0
            machine.flush()
        self.clock.advance(seconds=70)
        for key in (DAY, "log"):
            texts = [machine.read_text(key) or "" for machine in self.machines.values()]
            assert len(set(texts)) == 1
            assert sorted(texts[0].splitlines(keepends=True)) == sorted(
                text for there, text in self.lines if there == key
            )

    @invariant()
    def nothing_twice(self):
        for key in (DAY, "log") if hasattr(self, "store") else ():
            got = self.store.get(key)
            lines = [] if got is None else got.data.splitlines()
            assert len(lines) == len(set(lines))

    def teardown(self):
        if hasattr(self, "store"):
            self.settle()
            self.around.close()


TestMachines = Machines.TestCase
