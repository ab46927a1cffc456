"""The word index: where words occur, how often, and which turns are not indexed yet."""

from collections.abc import Sequence

from memplane.storage import conditions
from memplane.storage.engine import Indexed
from memplane.storage.session import INDEX_TURNS_MAX, SessionReader, WriteSession
from memplane.storage.turns import TAIL_TURNS_MAX, tail_stems

_INDEX_TURNS = 1_000


class WordIndexReader(SessionReader):
    """Reads of the word index."""

    def frequencies(self, stems: Sequence[str]) -> dict[str, int]:
        """In how many memories and turns each stem occurs. Stems are those of `words.stems_of`."""
        counts = dict.fromkeys(stems, 0)
        for term, count in self._session.words.frequencies(stems):
            counts[term] += count
        for row in self._session.filtered(
            "tail", conditions.WhereClause(), indexed=self._session.indexed(), limit=TAIL_TURNS_MAX
        ):
            for stem in counts.keys() & tail_stems(self._session, row[0], row[3]):
                counts[stem] += 1
        return counts

    def lag(self) -> int:
        """How many turns a search cannot find yet, because they are too far from the index to be scanned."""
        (waiting,) = self._session.one("tail_size", indexed=self._session.indexed())
        return max(0, int(waiting) - TAIL_TURNS_MAX)

    def corpus_size(self) -> int:
        """The approximate number of memories and turns; cheap at any size."""
        return int((self._session.one("corpus_size") or (0,))[0])

    def occurrences(self, stem: str) -> list[int]:
        """The numbers of indexed turns that contain the stem, once for each occurrence. A stem that `is_prefix`
        finds every stem that begins with it."""
        return self._session.words.occurrences("turn", [stem])[stem]

    def occurrences_of(self, stems: Sequence[str]) -> dict[str, list[int]]:
        """The same for each of these stems."""
        return self._session.words.occurrences("turn", stems) if stems else {}

    def common(self, words: Sequence[str], *, beyond: int) -> set[str]:
        """Those of these words that more than `beyond` turns contain; counts no further."""
        return self._common("turn", words, beyond)

    def not_indexed(self, *, after: int, until: int, limit: int) -> list[tuple[int, str]]:
        """(n, text) of turns with after < n <= until that are not in the word index yet, last first."""
        first = max(after, self._session.indexed())
        return [
            (n, text) for n, text in self._session.all("not_indexed", after=first, until=until, limit=limit)
        ]

    def span_occurrences(self, stem: str) -> list[int]:
        """As `occurrences`, for spans."""
        return self._session.words.occurrences("span", [stem])[stem]

    def common_in_spans(self, words: Sequence[str], *, beyond: int) -> set[str]:
        """As `common`, for spans."""
        return self._common("span", words, beyond)

    def indexed(self) -> int:
        """The number of the last turn in the word index."""
        return self._session.indexed()

    def _common(self, kind: Indexed, words: Sequence[str], beyond: int) -> set[str]:
        query = f"count_{kind}s_up_to"
        return {
            word
            for word in words
            if self._session.one(query, match=self._session.words.match(kind, [word]), limit=beyond + 1)[0]
            > beyond
        }


class WordIndexWriter(WordIndexReader):
    """The same inside a write transaction."""

    def __init__(self, session: WriteSession) -> None:
        self._session: WriteSession = session

    def index_until(self, n: int) -> bool:
        """Index or remove some turns, so that the index contains every turn up to this one and none after it;
        False once it does."""
        indexed = self._session.indexed()
        if indexed > n:
            found = self._session.all("not_indexed", after=n, until=indexed, limit=_INDEX_TURNS)
            self._session.words.drop("turn", [(number, text) for number, text in found])
            last = found[-1][0] - 1 if len(found) == _INDEX_TURNS else n
        else:
            found = self._session.all("tail_texts", indexed=indexed, beyond=n + 1, limit=_INDEX_TURNS)
            self._session.words.add("turn", [(number, text) for number, text in found])
            last = found[-1][0] if len(found) == _INDEX_TURNS else n
        if last != indexed:
            self._session.set_note("indexed", str(last))
        return last != n

    def index_turns(self, *, at_least: int = 1, limit: int = INDEX_TURNS_MAX) -> int:
        """Add turns to the index, if there are enough to be worth a segment; returns how many. See
        `WriteSession.index_turns`."""
        return self._session.index_turns(at_least=at_least, limit=limit)
