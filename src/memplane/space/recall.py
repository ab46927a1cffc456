"""A recall of one space: bring derived data up to date where that is quick, answer, and count what was used."""

from collections.abc import Callable, Sequence
from contextlib import suppress

import msgspec

from memplane.errors import SettingsInvalid, StorageError
from memplane.models.embedding import EmbeddingFailed
from memplane.recall.recall import RecallServices, recall
from memplane.recall.request import RecallRequest
from memplane.recall.result import Recall
from memplane.space.context import SpaceContext, pending_vectors, unsearchable_count
from memplane.storage.store import Reader
from memplane.worker.pace import Pace
from memplane.worker.pipeline import note_accesses


def answer(context: SpaceContext, request: RecallRequest) -> Recall:
    """Answer one request; a query that is longer than the settings allow is cut."""
    request = within_limits(context, request)
    parts = context.parts
    turn_index, memory_index, span_index = parts.indexes.of(context.tenant, context.owner)
    tools = RecallServices(
        questions=parts.questions,
        catalog=parts.catalog,
        settings=context.settings,
        turn_index=turn_index,
        memory_index=memory_index,
        span_index=span_index,
    )

    def lags(reader: Reader) -> tuple[str, ...]:
        return _lags(context, reader)

    with parts.yield_to_requests():
        with context.read() as reader:
            if parts.background is not None or parts.worker.lag(reader).nothing:
                return recall(reader, request, tools, now=context.clock(), lags=lags)
        with suppress(StorageError):  # a full disk does not prevent reading
            enrich_briefly(context)
        with context.read() as reader:
            return recall(reader, request, tools, now=context.clock(), lags=lags)


def within_limits(context: SpaceContext, request: RecallRequest) -> RecallRequest:
    """The request with a query that can be encoded and is as long as the settings allow."""
    query = request.query.encode("utf-8", "replace").decode("utf-8")[: context.settings.query_chars_max]
    return request if query == request.query else msgspec.structs.replace(request, query=query)


def enrich(context: SpaceContext, progress: Callable[[int], None] = lambda _: None) -> int:
    """Enrich every entry that waits for it; returns the number of steps."""
    context.catch_up()
    write_accesses(context, context.parts.access_counts.take(context.tenant, context.owner))
    with context.store() as store:
        return context.parts.worker.drain(store, progress=progress)


def enrich_briefly(context: SpaceContext) -> None:
    """Enrich for at most `recall_work_ms` where no worker runs: the last turn is then found by its meaning, and a large
    import delays no reader. A language model is too slow to be called here."""
    worker, seconds = context.parts.worker, context.settings.recall_work_ms / 1_000
    if context.parts.background is not None:
        return
    pace = Pace(seconds=seconds)
    with context.store() as store:
        with store.read() as reader:
            if worker.lag(reader).nothing:
                return
        with suppress(EmbeddingFailed, SettingsInvalid):  # the recall itself reports the failure
            while not pace.is_over and worker.step(store, reading=not worker.uses_model, pace=pace):
                pass


def write_accesses(context: SpaceContext, ids: Sequence[str]) -> None:
    """Count that these memories were recalled: frequently used ones become hot."""
    if ids:
        now, catalog = context.clock(), context.parts.catalog
        with context.store() as store:
            store.write(lambda writer: note_accesses(writer, ids, catalog, now))


def _lags(context: SpaceContext, reader: Reader) -> tuple[str, ...]:
    """Why an answer may be incomplete."""
    reasons = []
    if count := unsearchable_count(reader):
        reasons.append(f"indexing: {count:,} {'entry' if count == 1 else 'entries'} cannot be searched yet")
    lag = context.parts.worker.lag(reader)
    if lag.entries:
        are = "entry is" if lag.entries == 1 else "entries are"
        reasons.append(f"enrichment: {lag.entries:,} {are} not read for facts yet")
    if context.parts.embedder is not None and (lag.turns or lag.memories or lag.spans):
        reasons.append(
            pending_vectors(context, reader, "some turns, memories or spans can only be found by keyword yet")
        )
    if lag.documents:
        reasons.append(f"documents: {lag.documents:,} of them are not distilled yet")
    return tuple(reasons)
