"""What is told before a turn and how it is kept after it, without any door: the same words all through a conversation at
whichever process, one time box for whatever hangs, and no turn that is lost."""

import asyncio
import json
import os
import threading
from dataclasses import dataclass, field
from datetime import timedelta

import pytest

from memplane import Settings
from memplane.adapters.proxy.injection import Injection, Injector
from memplane.adapters.proxy.recorder import DIRECTORY, PendingTurn, PendingTurns, TurnRecorder
from memplane.errors import InvalidRequest, StorageFull
from memplane.ledger.history import Payload, compose_line
from memplane.space import Space
from memplane.space.ledger import Ledger
from memplane.telemetry import MemoryOp, format_event
from memplane.types import PinnedTexts

PATIENT_MS = 60_000
TEA = "Ann takes her tea with lemon and honey"


@dataclass
class Asks:
    """A `TurnRequest`."""

    question: str
    is_first: bool = True
    continues: bool = False
    has_tools: bool = False
    stored_by_provider: bool = False
    model: str = "gpt-4o"
    style: str = "openai"
    inbound: list = field(default_factory=list)
    system: object = None

    def texts(self):
        return [self.question]


class Process:
    """As much of a server as a turn needs; several of them have one data directory."""

    def __init__(self, plane, clock, **changes):
        settings = {"proxy_recall_ms": PATIENT_MS, "proxy_retain_ms": PATIENT_MS} | changes
        self.settings = Settings(data=plane.settings.data, **settings)
        self.plane = plane
        self.clock = clock
        self.events = []

    def turn(self, asked, conversation="c", *, owner="ann", before_keeping=lambda: None) -> Injection:
        """Told, then kept."""
        return asyncio.run(self._turn(asked, conversation, owner, before_keeping))

    async def _turn(self, asked, conversation, owner, before_keeping):
        teller = Injector(self.plane, self.settings, self.events.append)
        keeper = TurnRecorder(self.plane, self.settings, self.events.append, adapter="proxy")
        try:
            told = await teller.inject(self.plane.space(owner), asked, conversation, may_read=True)
            before_keeping()
            assert await keeper.record(lambda: self.kept(asked, told, conversation, owner))
        finally:
            await keeper.close()
            await teller.close()
        return told

    def kept(self, asked, told, conversation="c", owner="ann"):
        self.clock.advance(seconds=1)
        said = {"model": "m", "messages": [{"role": "user", "content": asked.question}]}
        line = compose_line(
            at=self.clock(),
            claw_id=owner,
            path="/v1/chat/completions",
            requested_model="m",
            effective_provider="openai",
            effective_model="m",
            response=Payload(json=b'{"choices":[{"message":{"role":"assistant","content":"Well."}}]}'),
            status_code=200,
            stream=False,
            request_original=json.dumps(said).encode(),
            request_effective=None,
        ).line
        return PendingTurn(
            tenant="default",
            owner=owner,
            actor="",
            conversation=conversation,
            model=asked.model,
            line=line,
            history=line,
            pins=told.pins,
        )


@pytest.fixture
def processes(open_plane, clock):
    """Two of them; the one that begins a conversation is not the one that goes on with it."""
    return Process(open_plane(), clock), Process(open_plane(), clock)


# ── the same words ───────────────────────────────────────────────────────────────────────────────────────────────


def test_a_conversation_has_one_brief_at_all_processes(processes):
    """
    Whatever is remembered meanwhile, and whichever process answers; the next conversation has the new one.
    """
    first, second = processes
    first.plane.space("ann").store("instruction", "Ann is allergic to nuts")

    begun = first.turn(Asks("Hello"))
    second.plane.space("ann").store("instruction", "Ann is allergic to milk too")
    later = [process.turn(Asks("And?", is_first=False)) for process in (second, first, second)]

    assert "nuts" in begun.brief
    assert [told.brief for told in later] == [begun.brief] * 3
    assert "milk" in second.turn(Asks("Hello"), "another").brief


def test_a_first_conversation_stays_without_a_brief(processes):
    """
    The space comes into being with the first turn; what it then knows is no reason to change how the prompt begins.
    """
    first, second = processes

    assert first.turn(Asks("My dog is called Rex")).brief == ""
    second.plane.space("ann").store("instruction", "Ann is allergic to nuts")
    assert second.turn(Asks("And?", is_first=False)).brief == ""


def test_what_memory_does_by_itself_changes_no_brief(processes, clock):
    """
    A sitting is told anew when more of it arrives late, and what was told of it before goes. That is no forgetting.
    """
    first, second = processes
    space = first.plane.space("ann")
    space.store("instruction", "Ann is allergic to nuts")
    long_ago = clock.moment - timedelta(days=30)
    for minute in range(8):
        said = f"On day {minute} we walked to the harbour in Lisbon and ate fish."
        space.retain(said, conversation="walks", at=long_ago + timedelta(minutes=minute))
        if minute == 5:
            space.enrich()
            begun = first.turn(Asks("Hello"))
            before = generation(space)
    space.enrich()

    assert generation(space) > before
    assert second.turn(Asks("And?", is_first=False)).brief == begun.brief


def generation(space):
    with space._context.read() as reader:
        return reader.state.marks().generation


def test_what_is_forgotten_is_told_no_more(processes):
    """
    A brief that may hold it is made anew, at every process.
    """
    first, second = processes
    space = first.plane.space("ann")
    nuts = space.store("instruction", "Ann is allergic to nuts")
    space.store("instruction", "Ann speaks Portuguese")
    assert "nuts" in first.turn(Asks("Hello")).brief

    second.plane.space("ann").forget(entries=[nuts.id])

    for process in processes:
        brief = process.turn(Asks("And?", is_first=False)).brief
        assert "nuts" not in brief
        assert "Portuguese" in brief


def test_what_is_forgotten_during_a_turn_is_not_pinned_by_it(processes):
    """
    The turn was told before and is kept afterwards: nothing brings it back.
    """
    first, second = processes
    space = first.plane.space("ann")
    nuts = space.store("instruction", "Ann is allergic to nuts")

    told = first.turn(Asks("Hello"), before_keeping=lambda: space.forget(entries=[nuts.id]))

    assert "nuts" in told.brief
    assert "nuts" not in second.turn(Asks("And?", is_first=False)).brief


def test_between_the_calls_of_tools_the_same_is_told_at_all_processes(processes, clock):
    """
    Though time goes on and more is known; the next question is told what bears on it, and nothing told stays nothing.
    """
    first, second = processes
    first.plane.space("ann").retain(TEA)
    asked = Asks("What goes into the tea?", has_tools=True)
    told = first.turn(asked)
    assert TEA in told.context

    clock.advance(minutes=3)
    second.plane.space("ann").retain("The tea has mint in it now")
    goes_on = Asks(asked.question, is_first=False, continues=True, has_tools=True)
    assert [process.turn(goes_on).context for process in (second, first)] == [told.context] * 2

    asked_next = Asks("Is there mint in the tea?", is_first=False, has_tools=True)
    assert "mint" in second.turn(asked_next).context


def test_nothing_told_stays_nothing_between_the_calls_of_tools(processes):
    """
    What is learned between two calls would stand before the first of them.
    """
    first, second = processes
    asked = Asks("What goes into the tea?", has_tools=True)
    assert first.turn(asked).context == ""

    second.plane.space("ann").retain(TEA)
    goes_on = Asks(asked.question, is_first=False, continues=True, has_tools=True)

    assert second.turn(goes_on).context == ""


def test_a_look_creates_no_space(processes):
    """
    Nor does a turn that is told something and never kept.
    """

    async def tell(process):
        teller = Injector(process.plane, process.settings, process.events.append)
        try:
            return await teller.inject(process.plane.space("nobody"), Asks("Hello"), "c", may_read=True)
        finally:
            await teller.close()

    told = asyncio.run(tell(processes[0]))

    assert (told.brief, told.context) == ("", "")
    assert not processes[0].plane.has_space("nobody")


# ── in time ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_whatever_hangs_all_of_it_takes_one_time_box(open_plane, clock, monkeypatch, tmp_path):
    """
    Our store and a memory service both: the turn waits as long as for the service alone. No clock is looked at: who is
    asked second is given what the first left, and together that is one box.
    """
    let_go, given = threading.Event(), []
    plane = open_plane()
    plane.space("ann").retain(TEA)
    context = tmp_path / "context" / "ann"
    context.mkdir(parents=True)
    manifest = {"version": 1, "service": "m", "base_url": "http://127.0.0.1:9", "recall": {"path": "/recall"}}
    manifest["recall"]["timeout_ms"] = 600
    (context / "memory.json").write_text(json.dumps(manifest))
    process = Process(plane, clock, claw_context_root=str(tmp_path / "context"))

    async def asked_service(self, url, body, token, answer, answer_bytes_max):
        given.append(asyncio.current_task())
        await asyncio.Event().wait()

    monkeypatch.setattr("memplane.adapters.clawdapus.memory_client.MemoryClient._exchange", asked_service)
    monkeypatch.setattr(Ledger, "pinned_texts", lambda self, names: let_go.wait(30))
    waited = []
    timeout = asyncio.timeout

    def noted(seconds):
        waited.append(seconds)
        return timeout(seconds)

    monkeypatch.setattr("asyncio.timeout", noted)

    async def tell():
        teller = Injector(plane, process.settings, process.events.append)
        try:
            return await teller.inject(plane.space("ann"), Asks("Tea?", has_tools=True), "c", may_read=True)
        finally:
            let_go.set()
            await teller.close()

    told = asyncio.run(tell())

    assert told.recalled.status == "timed_out"
    assert given
    assert sum(waited) <= 0.6


def test_a_recall_that_hangs_is_told_as_late(open_plane, clock, monkeypatch):
    """
    In the telemetry, with the words of the contract; the turn goes on without.
    """
    let_go = threading.Event()
    plane = open_plane()
    plane.space("ann").retain(TEA)
    process = Process(plane, clock, proxy_recall_ms=30)
    for name in ("recall", "recall_by_words", "brief"):
        monkeypatch.setattr(Space, name, lambda self, *_args, **_options: let_go.wait(30))

    told = process.turn(Asks("Tea?"), before_keeping=let_go.set)

    assert (told.brief, told.context) == ("", "")
    assert [(event.memory_op, event.memory_status, event.error) for event in process.events] == [
        ("recall", "timed_out", "context deadline exceeded"),
        ("retain", "succeeded", ""),
    ]


# ── kept ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def kept(**changes):
    fields = {"tenant": "default", "owner": "ann", "actor": "", "conversation": "c", "line": b"{}"}
    return PendingTurn(**(fields | {"history": b"{}"} | changes))


def test_what_waits_is_in_a_file_of_its_own(tmp_path):
    """
    Only its owner may read it, and nothing of what was told is in it.
    """
    pending = PendingTurns(tmp_path / DIRECTORY)

    file = pending.put(kept(pins=PinnedTexts(texts={"place": "Ann is allergic to nuts"})))

    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent.stat().st_mode & 0o777 == 0o700
    assert b"nuts" not in file.read_bytes()
    assert [turn for _, turn in pending.orphaned()] == [kept()]


def test_files_of_a_process_that_lives_are_its_own(tmp_path):
    """
    What is half written, or no turn at all, is passed over.
    """
    pending = PendingTurns(tmp_path / DIRECTORY)
    file = pending.put(kept())
    for name in (f"{os.getppid()}-00", "999999999-00.new", "readme"):
        file.with_name(name).write_bytes(file.read_bytes())
    file.with_name("999999999-01").write_bytes(b"\xc1")
    dead = file.rename(file.with_name("999999999-02"))

    found = list(pending.orphaned())

    assert [turn for _, turn in found] == [kept()]
    assert not dead.exists()
    pending.drop(found[0][0])
    pending.drop(found[0][0])
    assert not found[0][0].exists()


def test_where_everything_is_encrypted_nothing_waits_in_a_file(tmp_path):
    """
    It waits in memory alone.
    """
    assert PendingTurns(None).put(kept()) is None
    assert list(PendingTurns(None).orphaned()) == []
    (tmp_path / "file").write_text("")
    assert PendingTurns(tmp_path / "file" / DIRECTORY).put(kept()) is None


@pytest.mark.parametrize("error", [StorageFull("no room"), OSError("gone"), ZeroDivisionError()])
def test_a_turn_is_tried_again_until_it_is_written(processes, monkeypatch, error):
    """
    Whatever was wrong.
    """
    process, _ = processes
    retain, tries = Space.retain_entry, []

    def failing(self, entry, **options):
        tries.append(1)
        if len(tries) == 1:
            raise error
        return retain(self, entry, **options)

    monkeypatch.setattr(Space, "retain_entry", failing)
    monkeypatch.setattr("memplane.adapters.proxy.recorder._RETRY_S", (0.0,))

    async def run():
        keeper = TurnRecorder(process.plane, process.settings, process.events.append, adapter="proxy")
        turn = process.kept(Asks(TEA), Injection(agent=None))
        in_time = await keeper.record(lambda: turn)
        await keeper.close()  # which gives what waits its time
        return in_time, keeper.degraded()

    assert asyncio.run(run()) == (False, ())
    assert [turn.text for turn in process.plane.space("ann").turns()][-1] == TEA


def test_a_turn_that_can_never_be_written_is_not_tried_for_ever(processes, monkeypatch, caplog):
    """
    It is said in the log, without what was said in it.
    """
    process, _ = processes

    def refuses(self, entry, **_options):
        raise InvalidRequest("it is too long")

    monkeypatch.setattr(Space, "retain_entry", refuses)

    async def run():
        keeper = TurnRecorder(process.plane, process.settings, process.events.append, adapter="proxy")
        turn = process.kept(Asks(TEA), Injection(agent=None))
        assert not await keeper.record(lambda: turn)
        await keeper.close()

    asyncio.run(run())

    assert "cannot be recorded" in caplog.text
    assert TEA not in caplog.text


# ── what is told of it ───────────────────────────────────────────────────────────────────────────────────────────


def test_a_turn_is_one_recall_and_one_retain_in_the_telemetry(processes):
    """
    With the model, and with what was put into the prompt: its blocks, the length of the text between its marks and those,
    and how many were dropped. A brief is no operation of the contract.
    """
    process, _ = processes
    space = process.plane.space("ann")
    for number in range(12):
        space.retain(f"Tea number {number} is served with {'lemon' if number else 'sk-abcdefghij'}")
    space.store("instruction", "Ann is allergic to nuts")

    told = process.turn(Asks("Which tea is served with lemon?"))

    recall, retain = process.events
    block = told.context.partition("\n\n")[2].rpartition("\n\n")[0]
    assert block.startswith("--- BEGIN MEMORY (from memplane) ---\n")
    assert (recall.memory_op, recall.memory_status, recall.model) == ("recall", "succeeded", "gpt-4o")
    assert recall.memory_bytes == len(block.encode())
    assert recall.memory_blocks == len(told.recalled.blocks) + recall.memory_removed
    assert recall.memory_blocks <= 8
    assert (retain.memory_op, retain.memory_status, retain.model) == ("retain", "succeeded", "gpt-4o")
    assert (retain.memory_blocks, retain.memory_bytes) == (None, None)


def test_a_recall_that_fails_is_told_with_its_code(processes, monkeypatch):
    """
    And the turn with the code of what kept it from being written, each time that it was tried.
    """
    process, _ = processes
    process.plane.space("ann").retain(TEA)

    def full(self, *_args, **_options):
        raise StorageFull("no room")

    monkeypatch.setattr(Space, "recall", full)

    process.turn(Asks("Tea?"))

    assert [(it.memory_op, it.memory_status, it.error) for it in process.events] == [
        ("recall", "failed", "storage_full"),
        ("retain", "succeeded", ""),
    ]


def test_a_line_of_telemetry_is_spelled_as_go_spells_it():
    """
    In the contract's order, with what HTML would take for its own escaped, and without what says nothing.
    """
    event = MemoryOp(
        ts="2026-11-15T06:28:17Z",
        claw_id="a<b>&",
        memory_service="mem-svc",
        memory_op="recall",
        memory_status="succeeded",
        memory_blocks=0,
        memory_bytes=0,
    )

    assert format_event(event) == (
        '{"ts":"2026-11-15T06:28:17Z","claw_id":"a\\u003cb\\u003e\\u0026","type":"memory_op","intervention":null,'
        '"memory_service":"mem-svc","memory_op":"recall","memory_status":"succeeded","memory_blocks":0,"memory_bytes":0}'
    )
