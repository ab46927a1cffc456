"""Rank spans for a query, best first, with the reasons, and decide whether anything answers it.

As for turns, several weak signals are made comparable per query and added up. Differences: a document's score counts
for its spans, a query with several parts is also ranked for each part, and the second span of a document must beat
the first of another. docs/internals/documents.md has the figures and the alternatives tried.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import pairwise

import msgspec
import numpy as np
from numpy.typing import NDArray

from memplane.documents.span_index import SpanColumns, SpanIndex
from memplane.extract.relevance import Question
from memplane.models.embedding import Vector
from memplane.models.vectors import DEVIATIONS_MIN, Floats, Ints, dots, standard, unpacked
from memplane.storage.numbers import SPANS_PER_DOCUMENT_MAX
from memplane.storage.store import Reader
from memplane.types import Span

# A query that asks for several things is also ranked for each of them.


PARTS_MAX = 6
_SIGNIFICANT_MIN = 3
"""A part with fewer significant words is joined to its neighbour."""
_CHARS_READ_MAX = 2_000
"""The rest is pasted text."""

_BORDER = re.compile(
    r"[,;:]\s+(?=(?:and|but|or|while|whereas|which|who|whose|that|as)\b)"
    r"|\s(?=(?:while|whereas|before|after|compared\s+(?:to|with)|versus)\b)"
    r"|\s(?=and\s+(?:also|is|was|are|were|has|have|had|does|did|do|that|the|another|whose|who|which|what|how|when)\b)"
    r"|[;?!.]\s",
    re.IGNORECASE,
)


def parts_of(text: str) -> list[Question]:
    """The parts of a query that asks for several things; empty for a simple query."""
    beginning = text[:_CHARS_READ_MAX]
    cuts = [0, *(border.end() for border in _BORDER.finditer(beginning)), len(beginning)]
    begins: list[int] = []
    parts: list[Question] = []
    for start, end in pairwise(cuts):
        begins.append(start)
        parts.append(Question(beginning[start:end]))
        if len(parts) > 1 and (
            min(len(part.words) for part in parts[-2:]) < _SIGNIFICANT_MIN or len(parts) > PARTS_MAX
        ):
            begins.pop()
            parts[-2:] = [Question(beginning[begins[-1] : end])]
    return parts if len(parts) > 1 else []


COMMON = 10_000
"""A word in more spans than this does not help to choose, and scanning them is slow."""
SHARE_MIN = 0.11
"""The minimum share of the query, by word rarity, that the best span must contain without vectors: on MultiHop-RAG
three in five unanswerable questions have no such span, and one in fifty of the others."""
REACH_MIN = {"snowflake-arctic-embed-s-int8": (0.58, 0.79)}
"""That share combined with similarity, by model: for a very short query, and for a long one. On MultiHop-RAG seven in
ten unanswerable questions stay below, and one in 150 of the others."""

_WORDS_FEW, _WORDS_MANY = 4, 20
_SPANS_FEW = 1_000
"""Rarity is computed as if there were at least this many spans: in a small space every word would seem common."""
_BM25_K1 = 1.2
_BM25_B = 0.75
_PART_DOCUMENT_SHARE = 0.5
_REPEATED = 1.0
"""The penalty of every further span of a document: otherwise half of the results would be from one document."""
_POOL = 100
_NEAR = 300
_MOST = 100
_SAMPLE = 300
_EXACT_MAX = 4_096
"""Up to this many spans of the requested documents are all compared."""
_SPARE = 4
"""Extra spans fetched, in case some were removed since the index was read."""


class SpanWeights(msgspec.Struct, frozen=True, kw_only=True):
    """The weight of each channel; zero disables it."""

    meaning: float = 2.0
    """Similarity of the span's vector, made from its text under its titles."""
    words: float = 0.5
    """BM25 of the same."""
    document: float = 0.5
    """BM25 of its whole document."""
    part: float = 0.6
    """The best-matching part of the query, over the span and its document."""
    named: float = 5.0
    """The query contains a part of the document's name."""


WEIGHTS = SpanWeights()


class RankedSpan(msgspec.Struct, frozen=True, kw_only=True):
    """A span with its score and the contributions to it."""

    span: Span
    score: float
    contributions: Mapping[str, float]
    ranks: Mapping[str, int]
    relevant: bool
    """Whether it is related to the query, and anything answers it at all."""


class _StemWeight(msgspec.Struct, frozen=True):
    """The weight of a stem of the query."""

    indexes: Ints
    values: Floats
    documents: Ints
    document_values: Floats
    rarity: float


def rank_spans(  # what to rank, by what, and how many
    reader: Reader,
    index: SpanIndex,
    text: str,
    embedded: Callable[[], Vector | None],
    *,
    among: Collection[int] | None = None,
    limit: int,
    weights: SpanWeights = WEIGHTS,
) -> list[RankedSpan]:
    """`among` are the numbers (seq) of the documents to search; None: all. `embedded` returns the query's vector; it
    is called when everything else is done."""
    spans = index.refresh(reader)
    if not spans.count or limit <= 0:
        return []
    allowed = _allowed(spans, among)
    if not allowed.any():
        return []
    question = Question(text)
    held = _stem_weights(reader, index, spans, question)
    words, document = _word_scores(spans, held.values())
    part = _part_scores(spans, held, parts_of(text), (words, document))
    named = spans.named_in(text)
    of_named = words if named is None else np.where(named[spans.document], words, 0.0)
    standards = {"words": standard(words), "document": standard(document)}
    query = embedded()
    places, sample = _chosen(spans, query, allowed, (words, part, of_named))
    meaning = None if query is None else _meaning(reader, index, spans, query, places)
    judged = SpanScores(
        spans=spans,
        indexes=places,
        channels={
            "words": standards["words"][places],
            "document": standards["document"][spans.document[places]],
            "part": part[places],
        }
        | ({} if meaning is None else {"meaning": standard(meaning, sample)})
        | ({} if named is None else {"named": named[spans.document[places]].astype(np.float64)}),
        weights=weights,
    )
    best = judged.best(allowed[places], limit + _SPARE)
    share = words[places] / (sum(one.rarity for one in held.values()) or 1.0)
    bounds = _reach_bounds(index, len(question.words))
    relevant = _relevant(judged, share, meaning, allowed[places], bounds)
    return _ranked_spans(reader, judged, best, relevant)[:limit]


class SpanScores(msgspec.Struct, frozen=True, kw_only=True):
    """The values of every channel for the spans at these places."""

    spans: SpanColumns
    indexes: Ints
    channels: dict[str, Floats]
    weights: SpanWeights

    @property
    def documents(self) -> Ints:
        """By place, the place of the document."""
        documents: Ints = self.spans.document[self.indexes]
        return documents

    def best(self, allowed: NDArray[np.bool_], limit: int) -> list[tuple[int, float, int]]:
        """The best spans, best first: the index, the score, and how many better ones its document has. Ties go to the
        later span."""
        scores = np.where(allowed, self._scores(), -np.inf)
        pool = max(_POOL, limit * 4)
        chosen = np.argpartition(-scores, pool)[:pool] if pool < len(scores) else np.arange(len(scores))
        chosen = chosen[np.isfinite(scores[chosen])]
        ordered = chosen[np.lexsort((-self.indexes[chosen], -scores[chosen]))]
        seen: Counter[int] = Counter()
        put_back = []
        for index, score, document in zip(
            ordered.tolist(), scores[ordered].tolist(), self.documents[ordered].tolist(), strict=True
        ):
            put_back.append((index, score - _REPEATED * seen[document], seen[document]))
            seen[document] += 1
        put_back.sort(key=lambda one: -one[1])
        return put_back[:limit]

    def contributions(self, index: int, repeated: int) -> dict[str, float]:
        """The contributions to the score, largest first."""
        parts = {
            name: getattr(self.weights, name) * float(channel[index])
            for name, channel in self.channels.items()
        }
        if repeated:
            parts["repeated"] = -_REPEATED * repeated
        return dict(sorted(parts.items(), key=lambda part: -abs(part[1])))

    def ranks(self, index: int) -> dict[str, int]:
        """Its rank in every ranking channel, 1 the best; being named is yes or no."""
        return {
            name: 1 + int(np.count_nonzero(channel > channel[index]))
            for name, channel in self.channels.items()
            if name != "named"
        }

    def _scores(self) -> Floats:
        scores = np.zeros(len(self.indexes))
        for name, channel in self.channels.items():
            scores += getattr(self.weights, name) * channel
        return scores


def _stem_weights(
    reader: Reader, index: SpanIndex, spans: SpanColumns, question: Question
) -> dict[str, _StemWeight]:
    """Where each stem of the query occurs, without words too common to select anything."""
    common = index.common(reader, question, beyond=COMMON) if spans.count > COMMON else set()
    stems = dict.fromkeys(question.stems[word] for word in question.words if word not in common)
    held = {}
    for stem, (places, counts) in index.occurrences(reader, spans, stems).items():
        summed = np.bincount(spans.document[places], counts, len(spans.documents))
        documents = np.flatnonzero(summed)
        of_documents = summed[documents]
        rarity = _rarity(max(spans.count, _SPANS_FEW), len(places))
        held[stem] = _StemWeight(
            places,
            rarity * counts / (counts + _slack(spans.words[places], spans.words_usual)),
            documents,
            _rarity(len(spans.documents), len(documents))
            * of_documents
            / (of_documents + _slack(spans.document_words[documents], spans.document_words_usual)),
            rarity,
        )
    return held


def _rarity(total: int, holding: int) -> float:
    return math.log(1 + (total - holding + 0.5) / (holding + 0.5)) * (_BM25_K1 + 1)


def _slack(lengths: Floats, usual: float) -> Floats:
    return _BM25_K1 * (1 - _BM25_B + _BM25_B * lengths / usual)


def _word_scores(spans: SpanColumns, held: Iterable[_StemWeight]) -> tuple[Floats, Floats]:
    """BM25 of every span and of every document."""
    words, document = np.zeros(spans.count), np.zeros(len(spans.documents))
    for one in held:
        words[one.indexes] += one.values
        document[one.documents] += one.document_values
    return words, document


def _part_scores(
    spans: SpanColumns,
    held: Mapping[str, _StemWeight],
    parts: Sequence[Question],
    whole: tuple[Floats, Floats],
) -> Floats:
    """For every span, how well it answers the part of the query it answers best; a simple query is one part."""
    best: Floats | None = None
    of_parts = [
        _word_scores(spans, [held[stem] for stem in dict.fromkeys(part.stems.values()) if stem in held])
        for part in parts
    ]
    for words, document in of_parts or [whole]:
        scores = standard(words) + _PART_DOCUMENT_SHARE * standard(document)[spans.document]
        best = scores if best is None else np.maximum(best, scores)
    assert best is not None
    return best


def _allowed(spans: SpanColumns, among: Collection[int] | None) -> NDArray[np.bool_]:
    if among is None:
        return np.ones(spans.count, np.bool_)
    wanted = np.isin(
        np.array([head.seq for head in spans.documents], np.int64), np.array(list(among), np.int64)
    )
    allowed: NDArray[np.bool_] = wanted[spans.document]
    return allowed


def _chosen(
    spans: SpanColumns, query: Vector | None, allowed: NDArray[np.bool_], opinions: Sequence[Floats]
) -> tuple[Ints, NDArray[np.bool_] | None]:
    """The spans to rank, and those that supply mean and deviation. All while they are few; else the nearest by code,
    those that contain the words, and a sample."""
    if query is None or spans.vectors.exact:
        return np.arange(spans.count), None
    sample = np.arange(0, spans.count, max(1, spans.count // _SAMPLE))
    is_chosen, is_sample = np.zeros(spans.count, np.bool_), np.zeros(spans.count, np.bool_)
    is_chosen[sample] = is_sample[sample] = True
    wanted = np.flatnonzero(allowed)
    if len(wanted) <= _EXACT_MAX:
        is_chosen[wanted] = True
    else:
        near = spans.vectors.near(query, _NEAR, None if len(wanted) == spans.count else allowed)
        is_chosen[near[near < spans.count]] = True
        holding = np.flatnonzero(allowed & (opinions[0] > 0))
        for opinion in opinions:
            is_chosen[_most(opinion, holding)] = True
    found: Ints = np.flatnonzero(is_chosen)
    return found, is_sample[found]


def _most(opinion: Floats, holding: Ints) -> Ints:
    """The places with the largest values."""
    if len(holding) <= _MOST:
        return holding
    return holding[np.argpartition(-opinion[holding], _MOST)[:_MOST]]


def _meaning(
    reader: Reader, index: SpanIndex, spans: SpanColumns, query: Vector, places: Ints
) -> NDArray[np.float32] | None:
    """The dot product of every span with the query, NaN without a vector; None without any vectors."""
    found = spans.vectors.scores(query, places)
    if found is None:
        model = reader.vectors.model(*index.model)
        numbers = spans.n[places]
        packed = {} if model is None else reader.vectors.spans_at(model, numbers.tolist())
        found = np.full(len(places), np.nan, np.float32)
        there = np.array([int(number) in packed for number in numbers])
        if there.any():
            found[there] = dots(unpacked([packed[int(number)] for number in numbers[there]]), query)
    return found if np.isfinite(found).any() else None


def _reach_bounds(index: SpanIndex, words: int) -> tuple[float, float] | None:
    """The minimum for any span to be related to a query, and for the best to answer it: the longer the query, the
    more must match."""
    known = REACH_MIN.get(index.model[0])
    return None if known is None else (known[0], float(np.interp(words, (_WORDS_FEW, _WORDS_MANY), known)))


def _relevant(
    judged: SpanScores,
    share: Floats,
    meaning: NDArray[np.float32] | None,
    allowed: NDArray[np.bool_],
    bounds: tuple[float, float] | None,
) -> NDArray[np.bool_]:
    """By span, whether it is related to the query; none is if the best does not answer it."""
    held = share >= SHARE_MIN
    if meaning is None:
        near, answering = share > 0, held
    elif bounds is None:
        near = judged.channels["meaning"] >= DEVIATIONS_MIN
        near, answering = near | (share > 0), held | near
    else:
        reach, to_come = share + np.nan_to_num(meaning, nan=0.0), np.isnan(meaning)
        near = (reach >= bounds[0]) | ((share > 0) & to_come)
        answering = (reach >= bounds[1]) | (held & to_come)
    return near & bool((answering & allowed).any())


def _ranked_spans(
    reader: Reader, judged: SpanScores, best: Sequence[tuple[int, float, int]], relevant: NDArray[np.bool_]
) -> list[RankedSpan]:
    """Those that still exist."""
    spans, places = judged.spans, judged.indexes
    heads = [spans.documents[spans.document[places[index]]] for index, _, _ in best]
    read = {
        (span.document, span.ordinal): span
        for span in reader.documents.spans_at([int(spans.n[places[index]]) for index, _, _ in best])
    }
    return [
        RankedSpan(
            span=span,
            score=round(score, 4),
            contributions={
                name: round(part, 3) for name, part in judged.contributions(index, repeated).items()
            },
            ranks=judged.ranks(index),
            relevant=bool(relevant[index]),
        )
        for (index, score, repeated), head in zip(best, heads, strict=True)
        if (span := read.get((head.id, int(spans.n[places[index]]) % SPANS_PER_DOCUMENT_MAX))) is not None
    ]
