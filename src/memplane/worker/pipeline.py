"""The enrichment pipeline: derive memories from ledger entries, embed everything that can be recalled, distil documents
and write episodes.

The ledger is the queue. Each stage keeps its own cursor in the store and moves it in the transaction that writes its
results, so a crash loses nothing and repeats nothing visible. A stage computes outside of any transaction; before it
writes, it checks that no other worker was faster and that the entry was not forgotten in between."""

from collections.abc import Callable, Sequence
from hashlib import sha256
from itertools import chain

import msgspec
import numpy as np

from memplane.clock import Clock
from memplane.extract.apply import file_memory, resolve
from memplane.extract.catalog import PredicateCatalog
from memplane.extract.conflict import ConflictOutcome
from memplane.extract.deriver import DerivedEntry, Deriver
from memplane.extract.episodes import has_finished_sitting, note_turn, write_due_episodes
from memplane.extract.feedback import apply_feedback, tier_after_feedback
from memplane.extract.llm import LLMExtractor
from memplane.ledger.ids import derivation_id, is_variant
from memplane.ledger.payloads import (
    DerivePayload,
    FeedbackPayload,
    ForgetPayload,
    PurgePayload,
    ResolvePayload,
    decode,
    encode,
)
from memplane.memory import projection
from memplane.memory.forget_effects import ForgottenDecisions
from memplane.models.embedding import Embedder, EmbeddingUnusable, Vectors, checked
from memplane.models.llm import LLMFailed, LLMUnavailable
from memplane.recall.turn_embedding import embedded_text, is_question, pair_text, turn_vectors
from memplane.storage.filter import Filter
from memplane.storage.numbers import TURNS_PER_ENTRY_MAX, turn_number
from memplane.storage.store import Reader, Store, Writer
from memplane.storage.turns import TurnHead
from memplane.storage.vectors import MemoryVector, SpanVector, TurnVector
from memplane.storage.words import stems_of
from memplane.types import PAUSE, Caller, Entry, Memory, NewEntry, Op, State, Turn
from memplane.worker.distillation import TROUBLE, Distiller
from memplane.worker.pace import UNHURRIED, Pace, Speed
from memplane.worker.status import EmbeddingStatus, EnrichmentStatus, Lag

POISONED = "poisoned"
"""The note that counts entries whose derivation failed."""


NO_MODEL = ("none", 0)
_POISON = DerivedEntry(failed=True)
_ENTRIES_PER_STEP = 64
_MEMORIES_PER_COMMIT = 48
_TURNS_PER_STEP = 32
_MEMORIES_PER_STEP = 32
_SPANS_PER_STEP = 32
_CATCH_UP_PER_STEP = 2_000
_NEWEST_TURNS = 512
"""How many of the newest turns are embedded before older ones that wait: a reader asks about those first."""
_NEWEST_PER_STEP = 8
_EMBEDDED_CHARS_MAX = 2_000
"""About what a local model reads of a text."""
_EMBEDDED_CHARS_DOUBLE = 100
_EMBEDDED_CHARS_SQUARE = 370
"""What the shipped model takes, beside an empty text: twice as much for 100 characters, and with a part that grows with the
square of the length."""
_CHARS_PER_UNIT = 200
_DIGEST_BYTES = 8


class _PendingTurn(msgspec.Struct, frozen=True, gc=False):
    """A turn that needs a vector."""

    number: int
    text: str
    texts: tuple[str, str]
    """What its vector is made from: the turn alone, and with the turn before it."""
    digest: bytes


def model_of(embedder: Embedder | None) -> tuple[str, int]:
    """The id and dimension vectors are stored under. Without a model there are no vectors, but words are counted."""
    return NO_MODEL if embedder is None else (embedder.model_id, embedder.dimension)


class Worker:
    """Enrichment of one installation. Safe to use from many threads and processes: the second to finish writes nothing."""

    def __init__(
        self,
        *,
        embedder: Embedder | None,
        catalog: PredicateCatalog,
        clock: Clock,
        llm: LLMExtractor | None = None,
        distiller: Distiller | None = None,
    ) -> None:
        self._embedder = embedder
        self._model = model_of(embedder)
        self._catalog = catalog
        self._deriver = Deriver(catalog, llm)
        self._distiller = distiller or Distiller(clock)
        self._clock = clock
        # What each unit of work takes until it was measured.
        self._projecting = Speed(0.000_2)
        self._reading = Speed(0.001)
        self._embedding = Speed(0.005)
        self._distilling = Speed(0.002)
        self._reporting = Speed(0.02)

    @property
    def uses_model(self) -> bool:
        """Whether an LLM extracts facts; it is slow and may be unavailable."""
        return self._deriver.uses_model

    def drain(self, store: Store, *, progress: Callable[[int], None] = lambda _: None) -> int:
        """Run all pending enrichment and return the number of steps. If the LLM is unavailable, everything else still runs
        before the error is raised."""
        steps = 0
        away: LLMFailed | None = None
        while True:
            try:
                if not self.step(store, reading=away is None):
                    break
            except LLMFailed as exc:
                away = exc
            steps += 1
            progress(steps)
        if away is not None:
            raise away
        return steps

    def step(self, store: Store, *, reading: bool = True, pace: Pace = UNHURRIED) -> bool:
        """Run a bounded piece of work, memories first; return False if there was none, or none that fits the pace. Some
        of the newest turns are embedded in each step, so that a long backlog does not hide the conversation at hand.
        Raises `LLMUnavailable` and `EmbeddingUnavailable`. With `reading` off, no facts are extracted and no LLM is
        called for documents."""
        embeds = pace.has_time(self._embedding)
        newest = embeds and self._embed_newest_turns(store, pace)
        return (
            self._catch_up(store, pace)
            or (reading and self._derive(store, _ENTRIES_PER_STEP, pace))
            or (embeds and self._embed_turns(store, pace))
            or (embeds and self._embed_memories(store, pace))
            or (embeds and self._embed_spans(store, pace))
            or self._end_replacement(store)
            or self._distil(store, pace, reading=reading)
            or self._report(store, pace)
            or newest
        )

    def lag(self, reader: Reader) -> Lag:
        marks = reader.state.marks()
        if self._is_guest(reader):
            return Lag(
                entries=reader.ledger.head().seq - marks.derived,
                turns=False,
                memories=0,
                documents=reader.documents.undistilled_count(),
            )
        model = self._current(reader)
        done = 0 if model is None else reader.vectors.embedded(model)
        last = min(marks.last_turn, turn_number(marks.cursor, TURNS_PER_ENTRY_MAX - 1))
        return Lag(
            entries=reader.ledger.head().seq - marks.derived,
            turns=last > done or bool(reader.vectors.stale_turns(limit=1)),
            memories=reader.memories.count() if model is None else reader.vectors.pending_memory_count(),
            spans=reader.documents.span_count() if model is None else reader.vectors.pending_span_count(),
            documents=reader.documents.undistilled_count(),
        )

    def enrichment(self, reader: Reader) -> EnrichmentStatus:
        poisoned, tokens_in, tokens_out = (
            int(reader.state.note(name) or 0) for name in (POISONED, "tokens_in", "tokens_out")
        )
        return EnrichmentStatus(
            waiting=self.lag(reader),
            poisoned=poisoned,
            tokens_in=tokens_in,
            tokens_out=tokens_out,
            embedding=self.embedding(reader),
        )

    def embedding(self, reader: Reader) -> EmbeddingStatus:
        """Exact counts; while a large space is embedded again, they take time."""
        if self._embedder is None:
            return EmbeddingStatus(model=None)
        lag, model = self.lag(reader), self._current(reader)
        return EmbeddingStatus(
            model=self._model[0],
            replaces=self.replaced_model(reader),
            turns=reader.vectors.pending_turn_count(model, until=_last_projected(reader)),
            memories=lag.memories,
            spans=lag.spans,
        )

    def replaced_model(self, reader: Reader) -> str | None:
        """The id of the model whose vectors are being replaced by those of this worker's model; None if it did not change."""
        current = reader.vectors.current_model()
        if self._embedder is None or current is None:
            return None
        if current == reader.vectors.model(*self._model):
            return reader.vectors.replaced_model()
        return reader.vectors.model_id(current)

    # ── memories ─────────────────────────────────────────────────────────────────────────────────────────────

    def derive(self, store: Store) -> bool:
        """Derive memories from the next entries; return False if there are none."""
        return self._derive(store, _ENTRIES_PER_STEP, UNHURRIED)

    def derive_by_rules(self, store: Store) -> None:
        """Derive from all pending entries, unless an LLM extracts: its answers are applied when they arrive."""
        while not self.uses_model and self.derive(store):
            pass

    def read_all(self, store: Store) -> None:
        """Derive from all pending entries and write finished episodes: compaction does this before it removes turns. Raises
        `LLMFailed` if an LLM extracts and is unavailable."""
        while self.derive(store):
            pass
        while self._report(store, UNHURRIED):
            pass

    def _catch_up(self, store: Store, pace: Pace) -> bool:
        """Project turns that a bulk import left pending."""
        with store.read() as reader:
            waiting = reader.ledger.head().seq - reader.state.cursor()
        count = pace.fitting([1.0] * min(waiting, _CATCH_UP_PER_STEP), self._projecting)
        if not count:
            return False
        with pace.timed(self._projecting, count):
            store.write(lambda writer: projection.catch_up(writer, count))
        return True

    def _derive(self, store: Store, count: int, pace: Pace) -> bool:
        if not pace.has_time(self._reading):
            return False
        with store.read() as reader:
            marks = reader.state.marks()
            entries = reader.ledger.entries(after=marks.derived, limit=count)
            entries = [entry for entry in entries if entry.seq <= marks.cursor]
            turns = [_turns_of(reader, entry) for entry in entries]
            reported = reader.ledger.known([derivation_id(entry.id) for entry in entries])
            read = int(reader.state.note(projection.READ) or 0)
            decided = ForgottenDecisions(
                reader.replica.deletions() if marks.derived < read or reader.replica.merged() else ()
            )
        if not entries:
            return False
        unread = [
            [] if derivation_id(entry.id) in reported else said
            for entry, said in zip(entries, turns, strict=True)
        ]
        weights = [1 + sum(1 + len(turn.text) / _CHARS_PER_UNIT for turn in said) for said in unread]
        fitting = len(entries) if self.uses_model else pace.fitting(weights, self._reading)
        if not fitting:
            return False
        before = sum(entry.seq <= read for entry in entries[:fitting])
        with pace.timed(self._reading, sum(weights[:fitting])):
            readings = self._deriver.reread(unread[:before]) + self._deriver.read(unread[before:fitting])
            steps = list(zip(entries, turns, readings, strict=False))
            left = next((place for place, step in enumerate(steps) if step[2].deferred), len(steps))
            if not left:
                raise LLMUnavailable("the LLM is unavailable; it is retried later")
            steps = steps[: min(left, _fitting(steps))]
            try:
                store.write(lambda writer: self._file(writer, marks.derived, steps, decided))
            except TROUBLE:
                if count == 1:
                    poison = [(entries[0], turns[0][:0], _POISON)]
                    store.write(lambda writer: self._file(writer, marks.derived, poison, decided))
                else:
                    self._derive(store, 1, UNHURRIED)  # one by one, to find the entry that fails
        return True

    def _file(
        self,
        writer: Writer,
        derived: int,
        steps: Sequence[tuple[Entry, list[Turn], DerivedEntry]],
        decided: ForgottenDecisions,
    ) -> None:
        if writer.state.marks().derived != derived:
            return  # another worker was faster
        if derived == 0:
            writer.state.set_note(POISONED, "0")
        forgotten = writer.ledger.tombstoned([entry.id for entry, _, _ in steps])
        for entry, turns, reading in steps:
            if entry.ref is not None:
                _replace(writer, entry)
            if entry.id not in forgotten:
                self._apply(writer, entry, turns, reading, decided)
            for id_, by, at in decided.ended_at(entry.id):
                writer.memories.supersede(id_, by=by, at=at)
        last = steps[-1][0].seq
        writer.state.set_derived(last)
        writer.state.set_note(projection.READ, str(max(last, int(writer.state.note(projection.READ) or 0))))

    def _apply(
        self,
        writer: Writer,
        entry: Entry,
        turns: Sequence[Turn],
        reading: DerivedEntry,
        decided: ForgottenDecisions,
    ) -> None:
        if reading.failed:
            writer.state.set_note(POISONED, str(int(writer.state.note(POISONED) or 0) + 1))
        if reading.record is not None:
            self._record(writer, entry, reading.record)
        for name, tokens in (("tokens_in", reading.tokens_in), ("tokens_out", reading.tokens_out)):
            if tokens:
                writer.state.set_note(name, str(int(writer.state.note(name) or 0) + tokens))
        self._file_memories(writer, reading.memories, decided)
        for turn in turns:
            note_turn(writer, turn)
        if reading.failed or not entry.body:
            return
        if entry.op is Op.DERIVE and not is_variant(entry.id):
            self._apply_record(writer, entry, decided)
        elif entry.op is Op.FEEDBACK:
            rated = decode(entry)
            assert isinstance(rated, FeedbackPayload)
            apply_feedback(writer, rated, self._catalog)
        elif entry.op in (Op.FORGET, Op.SWEEP, Op.PURGE, Op.RESOLVE):
            _apply_decision(writer, entry, decided)

    def _file_memories(self, writer: Writer, memories: Sequence[Memory], decided: ForgottenDecisions) -> None:
        for memory in memories:
            outcome = decided.outcome(memory.id)
            file_memory(
                writer,
                memory,
                self._catalog,
                decided=None if outcome is None else ConflictOutcome(outcome),
                window=decided.window(memory.id),
            )

    def _record(self, writer: Writer, entry: Entry, record: DerivePayload) -> None:
        """Record the LLM's answer in the ledger. Its memories are derived when the worker reaches that entry, exactly as
        in a replay."""
        now = self._clock()
        draft = NewEntry(derivation_id(entry.id), Op.DERIVE, encode(record), Caller(adapter="worker"))
        projection.record(writer, draft, now)

    def _apply_record(self, writer: Writer, entry: Entry, decided: ForgottenDecisions) -> None:
        record = decode(entry)
        assert isinstance(record, DerivePayload)
        source = writer.ledger.get(record.entry)
        if source is not None and source.body:
            self._file_memories(writer, self._deriver.recorded(_turns_of(writer, source), record), decided)

    def _distil(self, store: Store, pace: Pace, *, reading: bool) -> bool:
        with store.read() as reader:
            waiting = reader.documents.undistilled(limit=1)
        weights = [1 + document.chars / _CHARS_PER_UNIT for document in waiting]
        if not pace.fitting(weights, self._distilling):
            return False
        with pace.timed(self._distilling, weights[0]):
            return self._distiller.step(store, reading=reading)

    def _report(self, store: Store, pace: Pace) -> bool:
        now = self._clock()
        with store.read() as reader:
            if not has_finished_sitting(reader, now):
                return False
        if not pace.fitting([1.0], self._reporting):
            return False
        with pace.timed(self._reporting, 1.0):
            return store.write(lambda writer: write_due_episodes(writer, now)) > 0

    # ── vectors ──────────────────────────────────────────────────────────────────────────────────────────────

    def _current(self, reader: Reader) -> int | None:
        """The number of our model; None if the stored vectors come from another one, so that all are pending."""
        number = reader.vectors.model(*self._model)
        return number if number == reader.vectors.current_model() else None

    def _is_guest(self, reader: Reader) -> bool:
        """Whether this process has no model but another one has: its vectors must not be dropped."""
        current = reader.vectors.current_model()
        return self._embedder is None and current is not None and current != reader.vectors.model(*NO_MODEL)

    def _embed_turns(self, store: Store, pace: Pace) -> bool:
        with store.read() as reader:
            if self._is_guest(reader):
                return False
            model = self._current(reader)
            done = 0 if model is None else reader.vectors.embedded(model)
            heads = self._pending_heads(reader, done)
            if heads:
                turns = reader.turns.between(heads[0].n, heads[-1].n)
            else:
                turns = reader.turns.at(
                    reader.vectors.stale_turns(limit=_TURNS_PER_STEP), Filter(now=0, audience=None)
                )
            if not turns:
                return False
            until = heads[-1].n if heads else done
            pending = _without_vector(reader, model, turns)
        vectors = self._turn_vectors(pending, pace)
        if len(vectors) < len(pending) and heads:
            first_left = pending[len(vectors)].number
            until = max((n for turn in turns if (n := _number(turn)) < first_left), default=done)
        if pending and not vectors and until == done:
            return False

        def work(writer: Writer) -> None:
            number = writer.vectors.use_model(*self._model)
            if writer.vectors.embedded(number) == done:
                writer.vectors.add_turns(number, vectors, until=until)

        store.write(work)
        return True

    def _embed_newest_turns(self, store: Store, pace: Pace) -> bool:
        """Embed some of the newest turns out of order if older ones keep them waiting. `embedded` does not move: when it
        gets there, it finds their vectors by the digests of their texts."""
        if self._embedder is None:
            return False
        with store.read() as reader:
            model, generation = self._current(reader), reader.state.marks().generation
            done = 0 if model is None else reader.vectors.embedded(model)
            if len(self._pending_heads(reader, done)) < _TURNS_PER_STEP:
                return False  # the next step in order includes them
            newest = reader.turns.newest(limit=_NEWEST_TURNS)
            known = {} if model is None else reader.vectors.turn_digests(model, newest)
            last = _last_projected(reader)
            numbers = [n for n in newest if done < n <= last and not known.get(n)][:_NEWEST_PER_STEP]
            turns = reader.turns.at(numbers, Filter(now=0, audience=None))
            turns.sort(key=lambda turn: numbers.index(_number(turn)))
            pending = _without_vector(reader, model, turns)
        vectors = self._turn_vectors(pending, pace)
        if not vectors:
            return False

        def work(writer: Writer) -> None:
            number = writer.vectors.use_model(*self._model)
            if writer.state.marks().generation != generation:
                return  # turns were forgotten or have other numbers now
            there = writer.vectors.turn_digests(number, [vector.n for vector in vectors])
            fresh = [vector for vector in vectors if there.get(vector.n) != vector.digest]
            writer.vectors.add_turns(number, fresh, until=writer.vectors.embedded(number))

        store.write(work)
        return True

    def _pending_heads(self, reader: Reader, done: int) -> list[TurnHead]:
        return reader.turns.heads(after=done, until=_last_projected(reader), limit=_TURNS_PER_STEP)

    def _turn_vectors(self, pending: Sequence[_PendingTurn], pace: Pace) -> list[TurnVector]:
        """The vectors of the first of these turns, as many as fit the pace."""
        vectors = self._vectors([turn.texts for turn in pending], turn_vectors, pace)
        return [
            TurnVector(turn.number, len(stems_of(turn.text)), is_question(turn.text), turn.digest, vector)
            for turn, vector in zip(pending, vectors, strict=False)
        ]

    def _embed_memories(self, store: Store, pace: Pace) -> bool:
        with store.read() as reader:
            model = self._current(reader)
            if self._is_guest(reader) or (model is None and not reader.memories.count()):
                return False
        if model is None:  # from now on they are pending for our model
            model = store.write(lambda writer: writer.vectors.use_model(*self._model))
        with store.read() as reader:
            waiting = reader.vectors.pending_memories(limit=_MEMORIES_PER_STEP)
            known = reader.vectors.memory_digests(model, [memory.id for memory in waiting])
        digests = {memory.id: _digest(memory.searchable) for memory in waiting}
        fresh = [memory for memory in waiting if known.get(memory.id) != digests[memory.id]]
        vectors = self._vectors([(memory.searchable,) for memory in fresh], _own, pace)
        made = [
            MemoryVector(memory.id, digests[memory.id], vector)
            for memory, vector in zip(fresh, vectors, strict=False)
        ]
        kept = [memory.id for memory in waiting if memory not in fresh]
        if not made and not kept:
            return False

        def work(writer: Writer) -> None:
            number = writer.vectors.use_model(*self._model)
            writer.vectors.add_memories(number, made)
            writer.vectors.keep_memories(number, kept)

        store.write(work)
        return True

    def _embed_spans(self, store: Store, pace: Pace) -> bool:
        with store.read() as reader:
            model = self._current(reader)
            if self._is_guest(reader) or (model is None and not reader.documents.span_count()):
                return False
        if model is None:
            model = store.write(lambda writer: writer.vectors.use_model(*self._model))
        with store.read() as reader:
            waiting = reader.vectors.pending_spans(limit=_SPANS_PER_STEP)
            known = reader.vectors.span_digests(model, [n for n, _ in waiting])
        digests = {n: _digest(text) for n, text in waiting}
        fresh = [(n, text) for n, text in waiting if known.get(n) != digests[n]]
        vectors = self._vectors([(text,) for _, text in fresh], _own, pace)
        made = [SpanVector(n, digests[n], vector) for (n, _), vector in zip(fresh, vectors, strict=False)]
        kept = [n for n in digests if known.get(n) == digests[n]]
        if not made and not kept:
            return False

        def work(writer: Writer) -> None:
            number = writer.vectors.use_model(*self._model)
            writer.vectors.add_spans(number, made)
            writer.vectors.keep_spans(number, kept)

        store.write(work)
        return True

    def _end_replacement(self, store: Store) -> bool:
        """Once nothing is pending, record that the vectors of the previous model are replaced."""
        with store.read() as reader:
            if reader.vectors.replaced_model() is None or self._current(reader) is None:
                return False
            lag = self.lag(reader)
            if lag.turns or lag.memories or lag.spans:
                return False  # too little time, or not read yet
        store.write(lambda writer: writer.vectors.end_replacement())
        return True

    def _vectors(
        self,
        groups: Sequence[tuple[str, ...]],
        combined: Callable[[Vectors, Vectors], Vectors],
        pace: Pace,
    ) -> list[bytes] | list[None]:
        """A packed vector for each of the first groups of texts, as many as fit the pace, combined from those of its first
        and its last text; None for each group where there is no model."""
        if self._embedder is None:
            return [None] * len(groups)
        made: list[bytes] = []
        weights = [sum(_embedding_weight(text) for text in frozenset(group)) for group in groups]
        while count := pace.fitting(weights[len(made) :], self._embedding):
            chosen = groups[len(made) : len(made) + count]
            row = {text: place for place, text in enumerate(dict.fromkeys(chain.from_iterable(chosen)))}
            with pace.timed(self._embedding, sum(weights[len(made) : len(made) + count])):
                vectors = self._embed(self._embedder, list(row))
            first, last = ([row[group[place]] for group in chosen] for place in (0, -1))
            made += _packed(combined(vectors[first], vectors[last]))
        return made

    def _embed(self, embedder: Embedder, texts: Sequence[str]) -> Vectors:
        """One row per text; zeros for a text the model rejects, which stays searchable by keyword."""
        try:
            return checked(embedder.embed_texts(texts), len(texts), embedder.dimension)
        except EmbeddingUnusable:
            if len(texts) > 1:
                return np.concatenate([self._embed(embedder, [text]) for text in texts])
            return np.zeros((len(texts), embedder.dimension), np.float32)


def note_accesses(writer: Writer, ids: Sequence[str], catalog: PredicateCatalog, now: int) -> None:
    """Count recalls of these memories; frequently used ones become hot."""
    writer.memories.add_accesses(ids, at=now)
    reported = list(dict.fromkeys(ids))
    counts = writer.memories.accesses(reported)
    tiers = []
    for memory in writer.memories.get_many(reported, Filter(now=now, include_superseded=True, audience=None)):
        if memory.derived:
            tier = tier_after_feedback(memory, catalog, accesses=counts.get(memory.id, 0))
            if tier is not memory.tier or memory.pinned or memory.flags:
                tiers.append((memory.id, tier))
    writer.memories.set_tiers(tiers)


def _fitting(steps: Sequence[tuple[Entry, list[Turn], DerivedEntry]]) -> int:
    """How many entries to apply in one commit; writers wait for it."""
    memories = 0
    for place, (_, _, reading) in enumerate(steps):
        memories += len(reading.memories)
        if memories > _MEMORIES_PER_COMMIT and place:
            return place
    return len(steps)


def _turns_of(reader: Reader, entry: Entry) -> list[Turn]:
    if entry.op not in (Op.TURN, Op.HISTORY) or not entry.body:
        return []
    return reader.turns.between(turn_number(entry.seq, 0), turn_number(entry.seq, TURNS_PER_ENTRY_MAX - 1))


def _replace(writer: Writer, entry: Entry) -> None:
    """A stored memory replaced a derived one. The projection did this on arrival; in a replay the derived memory does not
    exist until the worker reaches it. Applies even if the replacement was forgotten since."""
    assert entry.ref is not None
    replaced = writer.memories.get(entry.ref)
    if replaced is not None and replaced.derived:
        writer.memories.supersede(entry.ref, by=entry.id, at=entry.recorded)


def _apply_decision(writer: Writer, entry: Entry, decided: ForgottenDecisions) -> None:
    """Apply what a later entry decided about derived memories. Idempotent."""
    match decode(entry):
        case ForgetPayload(superseded=superseded, receipt=receipt):
            for id_ in superseded:
                memory = writer.memories.get(id_)
                if memory is not None and memory.derived and memory.state is not State.SUPERSEDED:
                    writer.memories.supersede(id_, by=receipt, at=entry.recorded)
        case PurgePayload(before=before):
            writer.memories.purge_superseded(before=before)
        case ResolvePayload() as resolved:
            losers = tuple(decided.heir_of(loser) for loser in resolved.losers)
            resolve(writer, decided.heir_of(resolved.winner), losers, resolved.at)


def _without_vector(reader: Reader, model: int | None, turns: Sequence[Turn]) -> list[_PendingTurn]:
    """Those of the turns whose text changed, or has no vector."""
    known = {} if model is None else reader.vectors.turn_digests(model, [_number(turn) for turn in turns])
    pending = []
    for turn in turns:
        texts = _texts(reader, turn)
        number, digest = _number(turn), _digest(*texts)
        if known.get(number) != digest:
            pending.append(_PendingTurn(number, turn.text, texts, digest))
    return pending


def _last_projected(reader: Reader) -> int:
    """The highest number of a turn up to the cursor. Recall does not know later ones yet, nor their vectors."""
    return turn_number(reader.state.cursor(), TURNS_PER_ENTRY_MAX - 1)


def _number(turn: Turn) -> int:
    return turn_number(turn.seq, turn.ordinal)


def _embedding_weight(text: str) -> float:
    chars = min(len(text), _EMBEDDED_CHARS_MAX)
    return 1 + chars / _EMBEDDED_CHARS_DOUBLE + (chars / _EMBEDDED_CHARS_SQUARE) ** 2


def _own(own: Vectors, _: Vectors) -> Vectors:
    return own


def _texts(reader: Reader, turn: Turn) -> tuple[str, str]:
    """The texts to embed for a turn: the turn alone, and with the turn before it."""
    before = reader.turns.before(turn)
    near = before is not None and abs(turn.at - before.at) < PAUSE
    return (
        embedded_text(turn.speaker or turn.role, turn.text),
        pair_text(before.text if before is not None and near else None, turn.speaker or turn.role, turn.text),
    )


def _digest(*texts: str) -> bytes:
    return sha256("\x00".join(texts).encode("utf-8", "surrogatepass")).digest()[:_DIGEST_BYTES]


def _packed(vectors: Vectors) -> list[bytes]:
    """Sixteen bits per number: half the space, and no ranking changes."""
    return [row.tobytes() for row in vectors.astype(np.float16)]
