"""Forgetting is a promise: after a forget, no byte of what was said is in any file of the data directory.

Secrets are made of characters that nothing else here uses, so that a trace of six letters, or of one pair of ideographs,
is a trace and not a coincidence. What stays on purpose: ids, who wrote, the reason that was given, and the scope of the
forget itself, such as a key or the name of a conversation.
"""

import random
import re
import shutil
import threading
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import ClassVar

import msgspec
import numpy as np
import pytest

from memplane import Caller, Memplane, Settings, Space
from memplane.adapters.importers import FORMATS
from memplane.clock import DAY, SECOND
from memplane.errors import InvalidRequest, LimitReached
from memplane.memory.runs import PackRun
from memplane.storage.sqlite.database import SqliteDatabase
from memplane.types import NewEntry, Op

KEY = "ab" * 32
NOW = 1_794_731_400 * SECOND
TRACE_LETTERS = 6

# Disjoint from the letters of FILLER; and nobody else writes six of them in a row.
LETTERS = "ghjkmpqvwxyz"
ACCENTED = "ĝĥĵķṁṗẁẍýẑžÿ"
IDEOGRAPHS = [chr(code) for code in range(0x9A00, 0x9B00)]
FILLER = "abdefilnorstu"
FILLER_IDEOGRAPHS = [chr(code) for code in range(0x4E00, 0x4F00)]


def spellings(word: str) -> set[str]:
    """In any case, composed or not, with or without accents: an index keeps words otherwise than they were written."""
    forms = (word, unicodedata.normalize("NFD", word), without_accents(word))
    return {spelled for form in forms for spelled in (form, form.lower(), form.upper())}


def without_accents(word: str) -> str:
    return "".join(c for c in unicodedata.normalize("NFD", word) if not unicodedata.combining(c))


def stretches(text: str, length: int = TRACE_LETTERS) -> set[str]:
    """What is long enough to be a trace. Ideographs have more bytes each, and the index keeps them in pairs."""
    if text[0] in IDEOGRAPHS:
        length = 2
    return {text[start : start + length] for start in range(len(text) - length + 1)}


class Secret:
    """Distinctive words of every sort the index treats differently. No two share a stretch that would be a trace."""

    _taken: ClassVar[set[str]] = set()

    def __init__(self, seed: object) -> None:
        self._rng = random.Random(f"secret {seed}")
        self.ascii = self._word(LETTERS, 12)
        self.accented = self._word(ACCENTED, 10)
        self.ideographs = self._word(IDEOGRAPHS, 8)
        self.mixed = self._word(LETTERS + LETTERS.upper(), 14)
        self.tag = self._word(LETTERS, 40)
        self.long = self._word(LETTERS, 400)
        self.words = (self.ascii, self.accented, self.ideographs, self.mixed, self.tag, self.long)

    def __str__(self) -> str:
        return " ".join(self.words)

    def _word(self, alphabet: Sequence[str], length: int) -> str:
        return new_word(self._rng, alphabet, length)


def new_word(rng: random.Random, alphabet: Sequence[str], length: int) -> str:
    """A word that shares no stretch with any before it, and does not repeat itself."""
    word = ""
    while len(word) < length:
        grown = word + rng.choice(alphabet)
        last = grown[-2:] if alphabet is IDEOGRAPHS else without_accents(grown[-TRACE_LETTERS:]).lower()
        whole = len(last) == (2 if alphabet is IDEOGRAPHS else TRACE_LETTERS)
        if not whole or last not in Secret._taken:
            word = grown
            Secret._taken |= {last} if whole else set()
    return word


_SHOWING = re.compile(
    "["
    + "".join({c for letter in LETTERS + ACCENTED for spelled in spellings(letter) for c in spelled})
    + "]{6,}"
    f"|[{IDEOGRAPHS[0]}-{IDEOGRAPHS[-1]}]{{2,}}"
)
_ESCAPED = re.compile(rb"\\u[0-9a-fA-F]{4}(?:\\u[0-9a-fA-F]{4})+")
_LETTERS = {
    spelled for letter in (*LETTERS, *ACCENTED, *IDEOGRAPHS) for word in spellings(letter) for spelled in word
}


def _units(encoding: str, kind: str) -> np.ndarray:
    """Whether a unit of an encoding can be part of a secret's character."""
    table = np.zeros(1 << 8 * np.dtype(kind).itemsize, bool)
    for letter in _LETTERS:
        table[np.frombuffer(letter.encode(encoding), kind)] = True
    return table


_ENCODINGS = [
    (encoding, kind, _units(encoding, kind), least)
    for encoding, kind, least in (("utf-8", "u1", 6), ("utf-16-le", "<u2", 3), ("utf-16-be", ">u2", 3))
]
"""With the fewest units that are a trace: two ideographs are six bytes in the first, and may be chance in the others."""


def showing(content: bytes) -> Iterator[str]:
    """Where a secret could begin to show: stretches of nothing but its characters, in any encoding."""
    for encoding, kind, table, least in _ENCODINGS:
        size = np.dtype(kind).itemsize
        for begin in range(min(size, len(content))):
            units = np.frombuffer(content, kind, (len(content) - begin) // size, begin)
            for piece in _pieces(table[units], least):
                raw = units[piece].tobytes().decode(encoding, "replace")
                yield from (run for run in _SHOWING.findall(raw) if size == 1 or len(run) > 2)
    for run in _ESCAPED.findall(content):
        yield from _SHOWING.findall(run.decode("unicode-escape"))


def _pieces(possible: np.ndarray, least: int) -> Iterator[slice]:
    """Where so many in a row are possible."""
    edges = np.flatnonzero(np.diff(possible, prepend=False, append=False))
    begins, ends = edges[::2], edges[1::2]
    long = ends - begins >= least
    return map(slice, begins[long], ends[long])


class Traces:
    """What is left of secrets in the files below a folder, and in whatever else is given."""

    def __init__(self, folder: Path, *others: bytes) -> None:
        places = [(path.name, path.read_bytes()) for path in sorted(folder.rglob("*")) if path.is_file()]
        places += [(f"other {number}", other) for number, other in enumerate(others)]
        self._found = {
            (name, stretch)
            for name, content in places
            for run in showing(content)
            for stretch in stretches(run)
        }

    def of(self, *words: str) -> list[tuple[str, str]]:
        telling = {stretch for word in words for spelled in spellings(word) for stretch in stretches(spelled)}
        return sorted(trace for trace in self._found if trace[1] in telling)


def exported(space: Space) -> bytes:
    return b"\n".join(line for lines in FORMATS.values() for line in lines(space))


class HandClock:
    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> int:
        return self.now


@contextmanager
def opened(folder: Path, **settings) -> Iterator[Space]:
    with Memplane.open(folder, settings=Settings(**settings), clock=HandClock()) as plane:
        yield plane.space("alice")


def fill(space: Space, seed: str, turns: int = 1_500, others: int = 250) -> None:
    """Neighbours of every sort, whose pages and index segments the secrets share."""
    rng = random.Random(seed)

    def word(length: int = 8) -> str:
        return "".join(rng.choices(FILLER, k=rng.randrange(3, length)))

    def text(words: int = 15) -> str:
        return (
            " ".join(word() for _ in range(words))
            + " "
            + "".join(rng.sample(FILLER_IDEOGRAPHS, k=4))
            + " "
            + word(40)
        )

    said = [
        {"role": "user", "content": text(), "at": NOW - n, "conversation": word(12), "project": word(12)}
        for n in range(turns)
    ]
    space.ledger.load(
        [NewEntry(f"{seed}-{n}", Op.TURN, msgspec.json.encode(body)) for n, body in enumerate(said)]
    )
    space.ledger.catch_up()
    last = None
    for number in range(others):
        last = space.store(
            "fact",
            text(),
            tags=[word(), word(12)],
            supersedes=last if number % 3 == 0 else None,
            conversation=word(12),
        ).id
        space.put(f"{word()}/{number % 90}", text(), category=word(), tags=[word()])


@pytest.fixture(scope="module")
def thousands(tmp_path_factory):
    """A space with thousands of rows, made once and copied."""
    folder = tmp_path_factory.mktemp("thousands")
    with opened(folder) as space:
        fill(space, "first")
    return folder


@pytest.fixture(params=["alone", "among thousands"])
def folder(request, tmp_path):
    if request.param == "among thousands":
        shutil.copytree(request.getfixturevalue("thousands"), tmp_path, dirs_exist_ok=True)
    return tmp_path


def say(space: Space, secret: Secret, **where: str) -> list[str]:
    """The secret in every place that one can write to; answers the ids."""
    return [
        space.retain(
            str(secret), **where, metadata={"note": secret.mixed, "deep": {secret.ascii: [secret.accented]}}
        ).id,
        space.store("fact", str(secret), tags=[secret.ascii, secret.accented, secret.ideographs], **where).id,
    ]


SCOPES = {
    "entries": lambda secret, ids: {"entries": ids},
    "conversation": lambda secret, ids: {"conversation": "the talk"},
    "project": lambda secret, ids: {"project": "the plan"},
    "time": lambda secret, ids: {"since": "2020-01-01T00:00:00Z", "until": "2020-01-02T00:00:00Z"},
    "everything": lambda secret, ids: {"everything": True},
}


@pytest.mark.parametrize("indexed", [False, True], ids=["waiting for the index", "indexed"])
@pytest.mark.parametrize("scope", SCOPES)
def test_forgotten_words_are_in_no_file(folder, scope, indexed):
    """Whatever the scope, wherever the words stood (text, tags, metadata), whether or not the index had them."""
    secret = Secret(scope)
    with opened(folder) as space:
        place = {"conversation": "the talk", "project": "the plan"}
        if scope == "time":
            ids = [space.retain(str(secret), at="2020-01-01T12:00:00Z", metadata={"note": secret.mixed}).id]
        else:
            ids = say(space, secret, **place)
        if indexed:
            fill(space, "after", turns=200, others=30)
        written = Traces(folder).of(secret.ascii)
        receipt = space.forget(**SCOPES[scope](secret, ids))
        left = Traces(folder, exported(space)).of(*secret.words)
        found = [
            hit
            for word in secret.words
            for hit in space.search(word, include_superseded=True, words_only=True)
        ]
        space.ledger.replay()
        after_replay = Traces(folder, exported(space)).of(*secret.words)
        checks = space.ledger.verify().problems, space.ledger.check()
    closed = Traces(folder).of(*secret.words)

    assert written
    assert receipt.off_disk
    assert receipt.counts["entries"] >= len(ids)
    assert found == []
    assert (left, after_replay, closed) == ([], [], [])
    assert checks == ((), [])


@pytest.mark.parametrize("scope", ["key", "prefix"])
def test_forgotten_facts_are_in_no_file(folder, scope):
    """All values a key ever had, their tags and categories; of the key itself, what the scope says."""
    secrets = [Secret(f"{scope} {number}") for number in range(4)]
    own = Secret(f"{scope} key")
    key = f"cellar/{own.ascii}"
    with opened(folder) as space:
        for secret in secrets:
            space.put(key, str(secret), category=secret.ascii, tags=[secret.accented, secret.ideographs])
        fill(space, "after", turns=100, others=30)
        written = Traces(folder).of(secrets[0].ascii)
        receipt = space.forget(**({"key": key} if scope == "key" else {"prefix": "cellar/"}))
        left = Traces(folder, exported(space)).of(*(word for secret in secrets for word in secret.words))
        left_of_key = Traces(folder, exported(space)).of(own.ascii)

    assert written
    assert receipt.off_disk
    assert receipt.counts["facts"] == len(secrets)
    assert left == []
    assert bool(left_of_key) == (scope == "key")  # then it is the scope itself, which the receipt keeps


def test_a_deleted_memory_is_in_no_file(folder):
    """One memory, with its conversation's name, which is nobody's scope here."""
    secret = Secret("delete")
    with opened(folder) as space:
        memory = space.store(
            "preference", str(secret), tags=[secret.ascii], conversation=secret.mixed, project=secret.accented
        )
        turn = space.retain("nothing to hide", conversation=secret.mixed, project=secret.accented)
        receipt = space.delete(memory.id)
        half = Traces(folder).of(secret.mixed)
        space.forget(entries=[turn.id])
        left = Traces(folder, exported(space)).of(*secret.words)

    assert receipt.off_disk
    assert half  # the turn said it, too
    assert left == []


def test_a_replaced_memory_is_in_no_file_when_it_is_forgotten(folder):
    """Neither what was replaced nor what replaced it, wherever they stand in a chain."""
    secrets = [Secret(f"chain {number}") for number in range(5)]
    with opened(folder) as space:
        ids = []
        for secret in secrets:
            ids.append(
                space.store("fact", str(secret), tags=[secret.ascii], supersedes=ids[-1] if ids else None).id
            )
        fill(space, "after", turns=80, others=30)
        space.forget(entries=[ids[1], ids[3], ids[4]])
        gone = Traces(folder).of(*(word for number in (1, 3, 4) for word in secrets[number].words))
        kept = [bool(Traces(folder).of(secrets[number].ascii)) for number in (0, 2)]
        space.forget(entries=ids)
        left = Traces(folder, exported(space)).of(*(word for secret in secrets for word in secret.words))

    assert gone == []
    assert kept == [True, True]
    assert left == []


def test_expired_facts_are_in_no_file_after_a_sweep(folder):
    """Sweeping erases like a forget; and as no scope names them, not even their keys stay. Runs are swept too."""
    secret, run = Secret("sweep"), Secret("run")
    clock = HandClock()
    with Memplane.open(folder, clock=clock) as plane:
        space = plane.space("alice")
        space.put(
            f"cellar/{secret.ascii}",
            str(secret),
            tags=[secret.mixed],
            category=secret.accented,
            ttl=timedelta(hours=1),
        )
        space.facts.record_run(
            PackRun(pack=run.ascii, outcome="ok", at_unix=1, learn_inputs={"persona": str(run)})
        )
        clock.now += DAY // 2
        swept_early = space.facts.sweep()
        after_a_day = Traces(folder, exported(space)).of(*secret.words)
        clock.now += 40 * DAY
        swept_late = space.facts.sweep()
        left = Traces(folder, exported(space)).of(*secret.words, *run.words)

    assert swept_early >= 1
    assert after_a_day == []
    assert swept_late >= 1
    assert left == []


def test_forgotten_histories_are_in_no_file(folder):
    """An imported line of a session history is erased with every turn spoken in it."""
    secret = Secret("history")
    line = (
        '{"version":1,"ts":"2026-11-15T08:00:00Z","claw_id":"a","path":"/v1/chat/completions","requested_model":"m",'
        '"effective_provider":"p","effective_model":"m","status_code":200,"stream":false,'
        f'"request_original":{{"messages":[{{"role":"user","content":"{secret}"}}]}},'
        f'"response":{{"format":"json","json":{{"choices":[{{"message":{{"role":"assistant","content":"{secret}"}}}}]}}}}}}'
    )
    with opened(folder) as space:
        space.ledger.load([NewEntry("hist-1", Op.HISTORY, line.encode())])
        fill(space, "after", turns=100, others=5)
        found = len(space.search(secret.ascii, words_only=True))
        receipt = space.forget(entries=["hist-1"])
        left = Traces(folder, exported(space)).of(*secret.words)

    assert found == 2
    assert receipt.counts["turns"] == 2
    assert left == []


def test_what_an_import_left_waiting_is_forgotten_too(folder):
    """Entries that are in the ledger but not yet in memory are in scope: nothing is overlooked because it is new."""
    secret = Secret("waiting")
    body = msgspec.json.encode(
        {"role": "user", "content": str(secret), "at": NOW, "conversation": "the talk"}
    )
    with opened(folder) as space:
        space.ledger.load([NewEntry(f"w{number}", Op.TURN, body) for number in range(3)])
        receipt = space.forget(conversation="the talk")
        left = Traces(folder, exported(space)).of(*secret.words)
        space.ledger.catch_up()
        turns = space.turns("the talk")

    assert receipt.counts["entries"] == 3
    assert left == []
    assert turns == []


@pytest.mark.parametrize("seed", range(1))
def test_many_forgotten_among_thousands_leave_nothing(thousands, tmp_path, seed):
    """Names, keys and tags are in indexes whose pages part and join all the time; of hundreds that were scattered among
    thousands and forgotten at once, none is left in the unused part of a page."""
    shutil.copytree(thousands, tmp_path, dirs_exist_ok=True)
    rng = random.Random(seed)
    secrets, ids = [], []
    with opened(tmp_path) as space:
        for number in range(150):
            secret = Secret(f"scattered {seed} {number}")
            where = {"conversation": secret.mixed, "project": secret.accented}
            match number % 3:
                case 0:
                    ids.append(space.retain(secret.ascii, **where).id)
                case 1:
                    ids.append(space.store("fact", secret.ascii, tags=[secret.tag], **where).id)
                case 2:
                    ids.append(
                        space.put(secret.mixed, secret.ascii, category=secret.accented, tags=[secret.tag]).id
                    )
            secrets.append(secret)
            if number % 10 == 0:
                fill(space, f"between {seed} {number}", turns=rng.randrange(60), others=15)
        space.forget(entries=ids)
        traces = Traces(tmp_path)
        left = [
            trace
            for secret in secrets
            for trace in traces.of(secret.ascii, secret.mixed, secret.accented, secret.tag)
        ]

    assert left == []


def test_words_that_part_the_leaves_of_the_index_go_too(thousands, tmp_path):
    """FTS5 keeps words of its own to find its leaves by; long ones that nobody else says are the likeliest to be
    chosen, in any script."""
    shutil.copytree(thousands, tmp_path, dirs_exist_ok=True)
    rng = random.Random("leaves")
    words = [new_word(rng, LETTERS, rng.randrange(100, 900)) for _ in range(60)]
    words += [new_word(rng, ACCENTED, 200) for _ in range(30)]
    with opened(tmp_path) as space:
        ids = [space.retain(word).id for word in words]
        ids += [space.store("fact", word).id for word in words]
        fill(space, "after", turns=200, others=5)
        written = Traces(tmp_path).of(words[0])
        receipt = space.forget(entries=ids)
        left = Traces(tmp_path).of(*words)

    assert written
    assert receipt.off_disk
    assert left == []


def test_words_that_part_the_leaves_of_the_index_of_documents_go_too(tmp_path):
    """As above, where documents are found by their words. Words that begin alike are told apart by long beginnings."""
    rng = random.Random("pages")
    beginning = new_word(rng, LETTERS, 40)
    with opened(tmp_path) as space:
        for _ in range(60):
            space.documents.upload(" ".join(new_word(rng, LETTERS, 12) for _ in range(150)), name="other")
            gone = " ".join(beginning + new_word(rng, LETTERS, 200) for _ in range(5))
            space.documents.upload(gone, name="gone", project="gone")
        written = Traces(tmp_path).of(beginning)
        receipt = space.forget(project="gone")
        left = Traces(tmp_path).of(beginning)

    assert written
    assert receipt.off_disk
    assert left == []


@contextmanager
def snapshot_held(space: Space) -> Iterator[None]:
    """Someone else reads, and is not done before the block is."""
    holding, stop = threading.Event(), threading.Event()

    def hold() -> None:
        with space._context.read() as reader:
            reader.ledger.head()
            holding.set()
            stop.wait(120)

    thread = threading.Thread(target=hold)
    thread.start()
    assert holding.wait(120)
    try:
        yield
    finally:
        stop.set()
        thread.join()


@pytest.mark.parametrize("by", ["forget", "wipe", "sweep"])
def test_a_reader_keeps_old_pages_for_a_while_and_the_receipt_says_so(folder, by, monkeypatch):
    """While someone reads what was, the receipt does not claim that it is off the disk; once they are done, the next
    forget, sweep or wipe removes it."""
    monkeypatch.setattr(
        "memplane.storage.sqlite.database._WIPE_WAIT_MS", 100
    )  # this one outlasts any patience
    secret, other = Secret("held"), Secret("held too")
    clock = HandClock()
    with Memplane.open(folder, clock=clock) as plane:
        space = plane.space("alice")
        ids = say(space, secret)
        space.put("cellar/shelf", other.ascii, ttl=timedelta(hours=1))
        with snapshot_held(space):
            receipt = space.forget(entries=ids)
            unseen = space.search(secret.ascii, words_only=True)
            held = Traces(folder).of(secret.ascii)
        clock.now += DAY
        finished = {
            "forget": lambda: space.forget(key="cellar/shelf").off_disk,
            "sweep": lambda: space.facts.sweep() > 0,
            "wipe": space.ledger.wipe,
        }[by]()
        left = Traces(folder).of(*secret.words)

    assert receipt.off_disk is False
    assert unseen == []
    assert held
    assert finished
    assert left == []


def test_a_large_space_is_written_anew_when_it_is_asked_for(folder):
    """Above a bound a forget does not keep writers waiting; its receipt says so, and `wipe` does the rest."""
    secret = Secret("large")
    with opened(folder, wipe_now_bytes_max=1) as space:
        ids = say(space, secret)
        receipt = space.forget(entries=ids)
        wiped = space.ledger.wipe()
        left = Traces(folder).of(*secret.words)

    assert receipt.off_disk is False
    assert wiped is True
    assert left == []


def test_a_forget_cut_off_before_the_wipe_is_finished_later(folder, monkeypatch):
    """If the program ends between the forget and the wipe, it is forgotten all the same, and a later wipe cleans up."""
    secret = Secret("cut off")
    with opened(folder) as space:
        ids = say(space, secret)
        fill(space, "after", turns=100, others=5)
        with monkeypatch.context() as patch:
            patch.setattr(
                SqliteDatabase, "wipe", lambda *_args, **_more: (_ for _ in ()).throw(KeyboardInterrupt)
            )
            with pytest.raises(KeyboardInterrupt):
                space.forget(entries=ids)
    with opened(folder) as space:
        unseen = space.search(secret.ascii, words_only=True)
        wiped = space.ledger.wipe()
        left = Traces(folder, exported(space)).of(*secret.words)

    assert unseen == []
    assert wiped
    assert left == []


def test_an_encrypted_space_forgets_as_thoroughly(tmp_path, thousands):
    """Under its cipher, too, nothing is left: taken out of encryption, the file holds no trace."""
    shutil.copytree(thousands, tmp_path, dirs_exist_ok=True)
    secrets = [Secret(f"encrypted {number}") for number in range(30)]
    with Memplane.open(tmp_path, clock=HandClock()) as plane:
        plane.rotate_key(KEY)
    with Memplane.open(tmp_path, key=KEY, clock=HandClock()) as plane:
        space = plane.space("alice")
        ids = [id_ for secret in secrets for id_ in say(space, secret, conversation=secret.mixed)]
        written = Traces(tmp_path).of(secrets[0].ascii)
        receipt = space.forget(entries=ids)
    with Memplane.open(tmp_path, key=KEY) as plane:
        plane.rotate_key(None)
    left = Traces(tmp_path).of(*(word for secret in secrets for word in secret.words))

    assert written == []
    assert receipt.off_disk
    assert left == []


def test_what_was_refused_was_never_written(tmp_path):
    """A write beyond a limit, or a bad one, leaves no trace of its content; an idempotency key is kept as a digest."""
    secret, key = Secret("refused"), Secret("idempotency")
    with Memplane.open(tmp_path, clock=HandClock()) as plane:
        space = plane.space("alice", caller=Caller(session="s"))
        for number in range(20):
            space.store("fact", f"fact {number}")
        with pytest.raises(LimitReached):
            space.store("fact", str(secret), tags=[secret.ascii])
        with pytest.raises(InvalidRequest):
            space.store("fact", str(secret) * 10)
        with pytest.raises(InvalidRequest):
            space.put(f"pack_history/{secret.ascii}", str(secret))
        space.retain("said", idempotency_key=str(key))
        left = Traces(tmp_path, exported(space)).of(*secret.words, *key.words)

    assert left == []


def test_what_stays_is_what_was_said_to_stay(folder):
    """Ids, callers, the reason and the scope of a forget are on record; this is the whole list."""
    words = {
        name: Secret(f"stays {name}").ascii
        for name in ("id", "actor", "session", "reason", "conversation", "text", "unknown")
    }
    with Memplane.open(folder, clock=HandClock()) as plane:
        space = plane.space("alice", caller=Caller(actor=words["actor"], session=words["session"]))
        space.retain(words["text"], id=words["id"], conversation=words["conversation"])
        receipt = space.forget(conversation=words["conversation"], reason=words["reason"])
        space.forget(entries=[words["unknown"]])
        staying = {name for name, word in words.items() if Traces(folder).of(word)}

    assert receipt.scope == {"conversation": words["conversation"]}
    assert staying == {"id", "actor", "session", "reason", "conversation", "unknown"}
