"""The pipeline stage that summarises documents, one at a time: from a recorded LLM answer if there is one, else by the
configured LLM, else from the document's own sentences.

As in every stage, the result is computed outside of any transaction, checked and written. A document that cannot be
summarised records the error and does not block others.
"""

import msgspec

from memplane.clock import Clock
from memplane.documents.distil import Distillation, distil
from memplane.documents.distil_llm import LLMDistiller, Summaries
from memplane.ledger.ids import distillation_id
from memplane.ledger.payloads import DistilPayload, decode, encode
from memplane.memory import projection
from memplane.safety.redact import redact
from memplane.storage.store import Reader, Store, Writer
from memplane.types import Caller, Document, DocumentStatus, NewEntry, Op, Section

TROUBLE = (ValueError, TypeError, ArithmeticError, LookupError, AssertionError, RecursionError)
"""Errors that code raises on unexpected text."""


class _Waiting(msgspec.Struct, frozen=True, kw_only=True):
    """A document waiting for its summaries."""

    document: Document
    sections: list[tuple[Section, str]]
    record: DistilPayload | None
    """The recorded LLM answer, if any."""
    known: bool
    """Whether it was summarised before."""


class Distiller:
    """The worker's stage for documents. Safe to use from many threads and processes."""

    def __init__(self, clock: Clock, llm: LLMDistiller | None = None) -> None:
        self._clock = clock
        self._llm = llm

    def step(self, store: Store, *, reading: bool = True) -> bool:
        """Summarise the next document; return False if there is none, or it needs an LLM and `reading` is off. Raises
        `LLMFailed`."""
        with store.read() as reader:
            waiting = _next(reader)
        if waiting is None:
            return False
        llm = None if waiting.known or waiting.record is not None else self._llm
        if llm is not None and not reading:
            return False
        document = waiting.document
        try:
            made, summaries = _distilled(waiting, llm)
            record = None if llm is None else self._record(document, made, summaries, llm)
            store.write(lambda writer: self._write(writer, document, made, record, summaries))
        except TROUBLE as exc:
            error = f"it could not be summarised ({type(exc).__name__}); its spans are found all the same"
            store.write(lambda writer: _fail(writer, document, error))
        return True

    def _record(
        self, document: Document, made: Distillation, summaries: Summaries, llm: LLMDistiller
    ) -> DistilPayload | None:
        """The ledger record of the LLM's answer; None if the answer is unusable."""
        if summaries.whole is None and not summaries.sections:
            return None
        return DistilPayload(
            entry=document.entry_id,
            document=document.id,
            whole=made.whole,
            sections=made.sections,
            model=llm.model,
            at=self._clock(),
            project=document.project,
            tokens_in=summaries.tokens_in,
            tokens_out=summaries.tokens_out,
        )

    def _write(
        self,
        writer: Writer,
        document: Document,
        made: Distillation,
        record: DistilPayload | None,
        summaries: Summaries,
    ) -> None:
        for name, tokens in (("tokens_in", summaries.tokens_in), ("tokens_out", summaries.tokens_out)):
            if tokens:
                writer.state.set_note(name, str(int(writer.state.note(name) or 0) + tokens))
        there = writer.documents.get(document.id)
        if there is None or there.seq != document.seq or there.status is not DocumentStatus.PROCESSING:
            return  # forgotten, replaced, or distilled by another worker since
        writer.documents.set_distillation(
            document.id, seq=document.seq, whole=made.whole, sections=made.sections
        )
        _note(writer, document)
        id_ = distillation_id(document.entry_id)
        if record is not None and not writer.ledger.known([id_]):
            draft = NewEntry(id_, Op.DISTIL, encode(record), Caller(adapter="worker"))
            projection.record(writer, draft, record.at)


def _next(reader: Reader) -> _Waiting | None:
    waiting = reader.documents.undistilled(limit=1)
    if not waiting:
        return None
    document = waiting[0]
    entry = reader.ledger.get(distillation_id(document.entry_id))
    record = decode(entry) if entry is not None and entry.body else None
    text = "".join(span.text for span in reader.documents.spans(document.id))
    return _Waiting(
        document=document,
        sections=[
            (section, text[section.start : section.end]) for section in reader.documents.sections(document.id)
        ],
        record=record if isinstance(record, DistilPayload) else None,
        known=document.seq <= int(reader.state.note(projection.DISTILLED) or 0),
    )


def _distilled(waiting: _Waiting, llm: LLMDistiller | None) -> tuple[Distillation, Summaries]:
    document, sections = waiting.document, waiting.sections
    own = distil(sections, document.name)
    if waiting.record is not None:
        return _recorded(waiting.record, own), Summaries()
    if llm is None:
        return own, Summaries()
    summaries = llm.distil(document.entry_id, sections, own.sections, document.name)
    texts = tuple(summaries.sections.get(place, said) for place, said in enumerate(own.sections))
    return Distillation(summaries.whole or own.whole, texts), summaries


def _recorded(record: DistilPayload, own: Distillation) -> Distillation:
    """The recorded answer, checked by today's rules; a section it does not cover is summarised from its own text."""
    said = [None if text is None else redact(text).text for text in record.sections]
    texts = tuple(
        (said[place] if place < len(said) else None) or mine for place, mine in enumerate(own.sections)
    )
    return Distillation(redact(record.whole).text or own.whole, texts)


def _fail(writer: Writer, document: Document, error: str) -> None:
    writer.documents.fail(document.id, seq=document.seq, error=error)
    _note(writer, document)


def _note(writer: Writer, document: Document) -> None:
    writer.state.set_note(
        projection.DISTILLED, str(max(document.seq, int(writer.state.note(projection.DISTILLED) or 0)))
    )
