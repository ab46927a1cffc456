"""A search of one space: embed what is new where that is quick, and search by words and by meaning."""

from contextlib import suppress

from memplane.errors import StorageError
from memplane.recall.search import NO_MODEL, SearchRequest, SearchResults, SearchServices, search
from memplane.space.context import SpaceContext
from memplane.space.recall import enrich_briefly, is_enriched
from memplane.storage.store import Reader


def run_search(context: SpaceContext, request: SearchRequest) -> SearchResults:
    """Search; by words only if the request asks for it, or if there is no model."""
    parts, now = context.parts, context.clock
    by_meaning = bool(request.query.strip()) and not request.words_only
    if not by_meaning or parts.embedder is None:
        with context.operation("search") as reader:
            hits = search(reader, request, now())
            return SearchResults(hits, [NO_MODEL] if by_meaning else [])
    turn_index, memory_index, _ = parts.indexes.of(context.tenant, context.owner)
    services = SearchServices(questions=parts.questions, turn_index=turn_index, memory_index=memory_index)
    with context.events.operation(context.owner, "search"):
        with context.read() as reader:
            if is_enriched(context, reader):
                return search(reader, request, now(), services)
        with suppress(StorageError):  # a full disk does not prevent reading
            enrich_briefly(context)
        with context.reading() as reader:
            hits = search(reader, request, now(), services)
            return SearchResults(hits, hits.degraded or _lags(context, reader))


def _lags(context: SpaceContext, reader: Reader) -> tuple[str, ...]:
    lag = context.parts.worker.lag(reader)
    if lag.turns or lag.memories:
        return ("vectors: some turns or memories can only be found by their words yet",)
    return ()
