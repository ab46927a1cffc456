"""Verification: whoever changes, reorders or drops a row with the database's own tools is found out, and an honest
forget is not."""

import apsw
import pytest

from memplane import Caller
from memplane.ledger.history import Payload, compose_line
from memplane.ledger.payloads import (
    KEEPING,
    CompactPayload,
    DecidePayload,
    DerivePayload,
    DistilPayload,
    FeedbackPayload,
    Judgement,
    PinPayload,
    PromotePayload,
    ReleasePayload,
    ResolvePayload,
    encode,
)
from memplane.memory.runs import PackRun
from memplane.storage.chain import GENESIS, entry_digest, payload_digest
from memplane.types import NewEntry, Op

OPS = [op.value for op in Op]
TRIGGERS = "SELECT name FROM sqlite_schema WHERE type = 'trigger'"

CHANGED = {
    "seq": "seq + 1000",
    "position": "position + 1000",
    "origin": "'elsewhere'",
    "chained_id": "id || '~0123456789ab'",
    "id": "id || 'x'",
    "op": "CASE op WHEN 'turn' THEN 'store' ELSE 'turn' END",
    "recorded": "recorded + 1",
    "actor": "actor || 'x'",
    "door": "door || 'x'",
    "session": "session || 'x'",
    "ref": "coalesce(ref, '') || 'x'",
    "payload_digest": "zeroblob(32)",
    "digest": "zeroblob(32)",
}
CHANGED_AUDIT = {
    "seq": "seq + 1000",
    "at": "at + 1",
    "actor": "actor || 'x'",
    "door": "door || 'x'",
    "session": "session || 'x'",
    "action": "action || 'x'",
    "target": "coalesce(target, '') || 'x'",
    "outcome": "'refused'",
    "detail": "detail || 'x'",
    "digest": "zeroblob(32)",
}


@pytest.fixture
def ledger(plane, clock):
    """A space with an entry of every op, some of them erased, and a few audit records."""
    space = plane.space("alice", caller=Caller("ann", "cli", "s1"))
    space.retain("first")
    old = space.store("fact", "old")
    space.store("fact", "new", supersedes=old.id)
    clock.advance(days=1)
    space.purge(0)
    space.put("k", "v", ttl=3_600)
    space.put("l", "v")
    space.facts.record_run(PackRun(pack="p", outcome="ok", at_unix=1))
    line = compose_line(
        at=clock(),
        claw_id="alice",
        path="/v1/chat/completions",
        requested_model="m",
        effective_provider="p",
        effective_model="m",
        request_original={"messages": [{"role": "user", "content": "hello"}]},
        response=Payload(json={"choices": []}),
    )
    space.ledger.load([NewEntry(line.id, Op.HISTORY, line.line)])
    clock.advance(hours=1)
    space.facts.sweep()
    gone = space.retain("forgotten")
    space.forget(entries=[gone.id, "never seen"], reason="asked")
    derived = encode(DerivePayload(entry="first", extractor="llm/m/1", claims=[[]]))
    decided = encode(ResolvePayload(winner="a", losers=("b",), at=clock()))
    space.ledger.load([NewEntry("derive-1", Op.DERIVE, derived), NewEntry("resolve-1", Op.RESOLVE, decided)])
    space.documents.create_collection("c", id="c")
    space.documents.upload("something to read", name="d", id="d", collection="c")
    told = encode(DistilPayload(entry="e", document="d", whole="all", sections=(), model="m", at=clock()))
    rated = encode(FeedbackPayload(recall="r", selected=("a",), ignored=("b",), at=clock()))
    space.ledger.load([NewEntry("distil-1", Op.DISTIL, told), NewEntry("feedback-1", Op.FEEDBACK, rated)])
    kept = encode(
        PromotePayload(day="2026-11-02", kind="preference", text="t", at=clock(), sources=("first",))
    )
    record = encode(CompactPayload(day="2026-11-02", judgements=(Judgement("first", "turn-0", "discard"),)))
    verdict = encode(DecidePayload(learning="learn-1", confirmed=False, by="kim"))
    bodies = {**dict.fromkeys(KEEPING, kept), Op.COMPACT: record, Op.DECIDE: verdict}
    bodies |= {
        Op.RELEASE: encode(ReleasePayload(id="first", at=clock())),
        Op.PIN: encode(PinPayload(memory="a", at=clock())),
    }
    space.ledger.load([NewEntry(f"{op}-1", op, body) for op, body in bodies.items()])
    space.retain("last")
    for number in range(3):
        space.ledger.add_audit("export", target=f"{number}", outcome="ok", detail="d")
    assert {entry.op.value for entry in space.ledger.entries()} == set(OPS)
    return space


@pytest.fixture
def tamper(space_file):
    """Runs SQL as someone would who has the file and the tools, and took the guards off first."""

    def run(*statements: str) -> None:
        connection = apsw.Connection(str(space_file))
        try:
            for (name,) in connection.execute(TRIGGERS).fetchall():
                connection.execute(f"DROP TRIGGER {name}")
            for statement in statements:
                connection.execute(statement)
                assert connection.changes() or statement.startswith("PRAGMA"), statement
        finally:
            connection.close()

    return run


def place(space, op: str) -> int:
    return next(entry.seq for entry in space.ledger.entries() if entry.op == op)


def test_an_honest_ledger_verifies(ledger):
    """Every op, a forget, a sweep and a purge: all is well, and the answer says how much was looked at."""
    verification = ledger.ledger.verify()

    assert (verification.ok, verification.problems) == (True, ())
    assert verification.entries == verification.seq == len(ledger.ledger.entries())
    assert verification.erased == sum(entry.body is None for entry in ledger.ledger.entries()) == 2
    assert verification.audit_records == 3
    assert len(bytes.fromhex(verification.digest)) == 32


def test_an_empty_ledger_verifies(space):
    """Nothing is a valid ledger."""
    verification = space.ledger.verify()

    assert (verification.ok, verification.seq, verification.digest) == (True, 0, "00" * 32)


def test_erased_payloads_still_verify(ledger):
    """After everything is forgotten the chain still proves that nothing was dropped or reordered."""
    before = ledger.ledger.verify()
    receipt = ledger.forget(everything=True)
    ledger.ledger.replay()

    after = ledger.ledger.verify(expected={before.seq: before.digest, receipt.seq: receipt.digest})
    assert after.ok
    assert after.erased > before.erased


def test_progress_is_told(ledger):
    """Long walks say where they are."""
    seen = []
    ledger.ledger.verify(progress=seen.append)

    assert seen[-1] == len(ledger.ledger.entries())


@pytest.mark.parametrize("column", CHANGED)
@pytest.mark.parametrize("op", OPS)
def test_any_change_to_an_entry_is_found(ledger, tamper, op, column):
    """Every column of an entry of every op is covered, and the problem names the entry."""
    seq = place(ledger, op)
    tamper(f"UPDATE ledger SET {column} = {CHANGED[column]} WHERE seq = {seq}")

    verification = ledger.ledger.verify()
    assert not verification.ok
    assert any(str(seq) in problem for problem in verification.problems)


def test_an_op_nobody_knows_is_named(ledger, tamper):
    """Verification says what is wrong; it does not fall over."""
    tamper("UPDATE ledger SET op = 'zzz' WHERE seq = 1")

    verification = ledger.ledger.verify()
    assert not verification.ok
    assert "entry 1" in verification.problems[0]


@pytest.mark.parametrize("column", ["salt", "body"])
@pytest.mark.parametrize("op", OPS)
def test_any_change_to_a_payload_is_found(ledger, tamper, op, column):
    """Body and salt of every op."""
    seq = next(entry.seq for entry in ledger.ledger.entries() if entry.op == op and entry.body is not None)
    tamper(f"UPDATE payload SET {column} = CAST({column} || 'x' AS BLOB) WHERE position = {seq}")

    problem = ledger.ledger.verify().problems[0]
    assert problem.startswith(f"the payload of entry {seq} (")
    assert problem.endswith("was changed")


@pytest.mark.parametrize("moved", ["1", "length(body)"])
def test_bytes_moved_between_salt_and_body_are_found(ledger, tamper, moved):
    """Where the salt ends and the body begins is part of the proof: a body cannot be emptied into its salt."""
    tamper(
        f"UPDATE payload SET salt = CAST(salt || substr(body, 1, {moved}) AS BLOB), "
        f"body = CAST(substr(body, 1 + {moved}) AS BLOB) WHERE position = 1"
    )

    (problem,) = ledger.ledger.verify().problems
    assert problem.startswith("the payload of entry 1 (")


def test_swapped_payloads_are_found(ledger, tamper):
    """A payload belongs to its entry."""
    tamper(
        "UPDATE payload SET position = -1 WHERE position = 1",
        "UPDATE payload SET position = 1 WHERE position = 2",
        "UPDATE payload SET position = 2 WHERE position = -1",
    )

    assert len(ledger.ledger.verify().problems) == 2


def test_a_payload_that_nobody_forgot_is_missed(ledger, tamper):
    """Erasing without a tombstone is not forgetting."""
    tamper("DELETE FROM payload WHERE position = 1")

    (problem,) = ledger.ledger.verify().problems
    assert "entry 1" in problem
    assert "no forget removed it" in problem


@pytest.mark.parametrize("statement", ["DELETE FROM tombstone", "UPDATE tombstone SET id = id || 'x'"])
def test_a_lost_tombstone_is_missed(ledger, tamper, statement):
    """An erased payload without its tombstone has no excuse."""
    tamper(statement)

    assert (
        len([problem for problem in ledger.ledger.verify().problems if "no forget removed it" in problem])
        == 2
    )


@pytest.mark.parametrize(
    "statements",
    [
        (
            "INSERT INTO tombstone SELECT id, 1, 0, '', NULL FROM ledger WHERE seq = 1",
            "DELETE FROM payload WHERE position = 1",
        ),
        ("DELETE FROM tombstone WHERE id = 'never seen'",),
        ("UPDATE tombstone SET reason = 'other'",),
        ("UPDATE tombstone SET at = at + 1",),
        ("UPDATE tombstone SET position = position + 1",),
    ],
    ids=["forged", "dropped", "reason", "at", "seq"],
)
def test_a_forged_tombstone_is_found(ledger, tamper, statements):
    """A tombstone that no forget made does not excuse a missing payload, and one that a forget made cannot vanish."""
    tamper(*statements)

    assert not ledger.ledger.verify().ok


@pytest.mark.parametrize(
    ("column", "problem"), [("position", "does not follow"), ("seq", "not in the place")]
)
def test_reordered_entries_are_found(ledger, tamper, column, problem):
    """Two entries that changed places no longer follow from each other, or do not stand in the order of their times."""
    tamper(
        f"UPDATE ledger SET {column} = -1 WHERE {column} = 2",
        f"UPDATE ledger SET {column} = 2 WHERE {column} = 3",
        f"UPDATE ledger SET {column} = 3 WHERE {column} = -1",
    )

    assert any("entry 2" in found and problem in found for found in ledger.ledger.verify().problems)


def test_a_dropped_entry_is_found(ledger, tamper):
    """A gap in the middle is named."""
    tamper("DELETE FROM ledger WHERE seq = 4", "DELETE FROM payload WHERE position = 4")

    problems = ledger.ledger.verify().problems
    assert problems[0] == "entries 4 to 4 are missing"
    assert "entry 5" in problems[1]


def test_a_dropped_beginning_is_found(ledger, tamper):
    """So is one at the start."""
    tamper("DELETE FROM ledger WHERE seq <= 3", "DELETE FROM payload WHERE position <= 3")

    assert ledger.ledger.verify().problems[0] == "entries 1 to 3 are missing"


def test_a_closed_gap_is_found(ledger, tamper):
    """Renumbering what follows does not hide it."""
    tamper(
        "DELETE FROM ledger WHERE seq = 4",
        "DELETE FROM payload WHERE position = 4",
        "UPDATE payload SET position = position - 1 WHERE position > 4",
        "UPDATE ledger SET seq = seq - 1, position = position - 1 WHERE seq > 4",
    )

    assert any("entry 4" in problem for problem in ledger.ledger.verify().problems)


def test_a_dropped_end_is_found(ledger, tamper):
    """The projection knows how far the ledger went."""
    last = ledger.ledger.entries()[-1].seq
    tamper(f"DELETE FROM ledger WHERE seq = {last}", f"DELETE FROM payload WHERE position = {last}")

    (problem,) = ledger.ledger.verify().problems
    assert f"ends at entry {last - 1} but {last} were there" in problem


def test_a_dropped_end_is_found_by_what_was_written_down(ledger, tamper):
    """Who also resets the projection is found out by a digest kept elsewhere."""
    before = ledger.ledger.verify()
    tamper(
        f"DELETE FROM ledger WHERE seq = {before.seq}",
        f"DELETE FROM payload WHERE position = {before.seq}",
        f"UPDATE meta SET value = '{before.seq - 1}' WHERE name = 'cursor'",
    )

    assert ledger.ledger.verify().ok
    (problem,) = ledger.ledger.verify(expected={before.seq: before.digest}).problems
    assert problem == f"entry {before.seq} is gone, and a digest of it is on record"


def test_a_dropped_forget_is_found(ledger, tamper):
    """Who takes a forget away with everything it left cannot give back what it erased."""
    (receipt,) = ledger.ledger.receipts()
    tamper(
        f"DELETE FROM ledger WHERE seq >= {receipt.seq}",
        f"DELETE FROM payload WHERE position >= {receipt.seq}",
        f"DELETE FROM tombstone WHERE position >= {receipt.seq}",
        f"UPDATE meta SET value = '{receipt.seq - 1}' WHERE name = 'cursor'",
    )

    (problem,) = ledger.ledger.verify().problems
    assert "no forget removed it" in problem


def test_an_emptied_ledger_is_found(ledger, tamper):
    """Even when there is nothing left to compare."""
    tamper("DELETE FROM payload", "DELETE FROM ledger")

    assert not ledger.ledger.verify().ok


def test_a_ledger_rewritten_as_a_whole_is_found_by_what_was_written_down(ledger, tamper, space_file):
    """A forger who computes every digest anew passes the chain, and not the witnesses."""
    before = ledger.ledger.verify()
    receipts = {receipt.seq: receipt.digest for receipt in ledger.ledger.receipts()}
    with ledger._context.read() as reader:
        rows = reader.ledger.rows()
    digest, statements = GENESIS, []
    for row in rows:
        entry, body, of_payload = row.entry, row.entry.body, row.payload_digest
        if entry.seq == 1:
            body = body.replace(b"first", b"forged")
            of_payload = payload_digest(row.salt, body)
            statements.append(f"UPDATE payload SET body = x'{body.hex()}' WHERE position = 1")
        draft = NewEntry(entry.id, entry.op, b"", entry.caller, entry.ref)
        digest = entry_digest(digest, of_payload, entry.seq, draft, entry.recorded)
        statements.append(
            f"UPDATE ledger SET payload_digest = x'{of_payload.hex()}', digest = x'{digest.hex()}' WHERE seq = {entry.seq}"
        )
    tamper(*statements)

    assert ledger.ledger.verify().ok
    assert not ledger.ledger.verify(expected={before.seq: before.digest}).ok
    assert not ledger.ledger.verify(expected=receipts).ok


@pytest.mark.parametrize("column", CHANGED_AUDIT)
def test_any_change_to_an_audit_record_is_found(ledger, tamper, column):
    """Every column of it."""
    tamper(f"UPDATE audit SET {column} = {CHANGED_AUDIT[column]} WHERE seq = 2")

    problems = ledger.ledger.verify().problems
    assert any("audit record" in problem for problem in problems)


def test_a_dropped_audit_record_is_found(ledger, tamper):
    """A gap is named."""
    tamper("DELETE FROM audit WHERE seq = 2")

    assert ledger.ledger.verify().problems[0] == "audit records 2 to 2 are missing"


def test_a_dropped_end_of_the_audit_log_is_found(ledger, tamper):
    """Refusals at the end of the log cannot be made to vanish."""
    tamper("DELETE FROM audit WHERE seq = 3")

    assert not ledger.ledger.verify().ok


def test_problems_are_not_endless(space, tamper):
    """A ledger that is wrong everywhere is reported in a few lines."""
    for number in range(40):
        space.retain(f"{number}")
    tamper("UPDATE ledger SET recorded = recorded + 1")

    assert len(space.ledger.verify().problems) == 20
