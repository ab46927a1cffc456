"""A search of one space: embed what is new where that is quick, and search by words and by meaning."""

from contextlib import suppress

from memplane.errors import StorageError
from memplane.recall.search import NO_MODEL, SearchRequest, SearchResults, SearchServices, search
from memplane.space.context import SpaceContext, pending_vectors
from memplane.space.recall import enrich_briefly
from memplane.storage.store import Reader

_ENRICHED_MAX = 500
"""If more entries and memories than this wait for enrichment, a search does not wait for a part of them."""
_NOT_ALL = "some turns or memories can only be found by their words yet"


def run_search(context: SpaceContext, request: SearchRequest) -> SearchResults:
    """Search; by words only if the request asks for it, or if there is no model."""
    parts = context.parts
    by_meaning = bool(request.query.strip()) and not request.words_only
    if not by_meaning or parts.embedder is None:
        with context.operation("search") as reader:
            hits = search(reader, request, context.clock())
            return SearchResults(hits, [NO_MODEL] if by_meaning else [])
    turn_index, memory_index, _ = parts.indexes.of(context.tenant, context.owner)
    services = SearchServices(questions=parts.questions, turn_index=turn_index, memory_index=memory_index)
    with context.events.operation(context.owner, "search"), parts.yield_to_requests():
        with context.read() as reader:
            ahead = reader.ledger.head().seq - reader.state.cursor()
            enrich = _is_worth_enriching(context, reader, ahead)
            if not ahead and not enrich:
                return _search(context, reader, request, services)
        if enrich:
            with suppress(StorageError):  # a full disk does not prevent reading
                enrich_briefly(context)
        with context.reading() as reader:
            return _search(context, reader, request, services)


def _is_worth_enriching(context: SpaceContext, reader: Reader, ahead: int) -> bool:
    """Whether a moment of enrichment makes what is new searchable by meaning. `ahead` entries are not in the projection."""
    lag = context.parts.worker.lag(reader)
    if context.parts.background is not None or (lag.nothing and not ahead):
        return False
    return ahead + lag.entries + lag.memories <= _ENRICHED_MAX


def _search(
    context: SpaceContext, reader: Reader, request: SearchRequest, services: SearchServices
) -> SearchResults:
    hits = search(reader, request, context.clock(), services)
    lag = context.parts.worker.lag(reader)
    if not hits.degraded and (lag.turns or lag.memories):
        return SearchResults(hits, [pending_vectors(context, reader, _NOT_ALL)])
    return hits
