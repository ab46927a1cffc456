"""What documents say, as lines of a recall: each cites the document and the section it comes from."""

from collections.abc import Iterator, Sequence

from memplane.documents.naming import bare, is_title, without_title
from memplane.documents.result import DocumentSummary, SpanHit, Strategy
from memplane.documents.search import DocumentResults
from memplane.recall.render import DocumentShare, Group, Sanitizer
from memplane.recall.result import DEGRADED
from memplane.safety.injection import flags_of, marked

_CITED_CHARS_MAX = 200
_BRACKETS = str.maketrans("[]", "()")


def share_of(consulted: DocumentResults, memory_percent: int, tame: Sanitizer) -> DocumentShare:
    """The lines, and the room they may take: half as much is kept for memory where documents were asked for."""
    asked_for = consulted.strategy not in (None, Strategy.LOCAL)
    short = [*([DEGRADED] if consulted.degraded else []), *_short(consulted, tame)]
    passages = [passage(hit, tame) for hit in consulted.spans]
    groups: list[Group] = [("Documents in short:", short)]
    return DocumentShare(
        short=groups,
        passages=[("From documents:", passages)],
        said_by=_said_by(short, passages),
        memory_percent=max(0, min(100, memory_percent)) // (2 if asked_for else 1),
        first=asked_for,
    )


def _short(consulted: DocumentResults, tame: Sanitizer) -> Iterator[str]:
    """Who asked for a section did not ask for the document it is in."""
    for document in consulted.documents:
        if document.distillation and consulted.strategy is not Strategy.SECTION:
            yield _line((document.name,), document.distillation, tame.short(document.distillation), tame)
        yield from _sections(document, tame)


def _sections(document: DocumentSummary, tame: Sanitizer) -> Iterator[str]:
    """But for those that have nothing to say in short: the citation tells their title already."""
    for section in document.sections:
        if section.distillation and not is_title(section.distillation, section.path):
            told = tame.short(section.distillation)
            yield _line((document.name, *section.path), section.distillation, told, tame)


def _said_by(short: Sequence[str], passages: Sequence[str]) -> dict[str, str]:
    """By passage, the line in short that says all of it: that of a short section."""
    said = {bare(line): line for line in short}
    return {passage: said[bare(passage)] for passage in passages if bare(passage) in said}


def passage(hit: SpanHit, tame: Sanitizer) -> str:
    text = without_title(hit.span.text, hit.section)
    return _line((hit.document_name, *hit.section), hit.span.text, tame.short(text).strip(), tame)


def _line(path: tuple[str, ...], said: str, told: str, tame: Sanitizer) -> str:
    """With a warning where what it says, or what it is called, is flagged."""
    flags = flags_of(*path, said)
    warned = f"{marked(flags)} " if flags else ""
    return f"- [{cited(path, tame)}] {warned}{told}"


def cited(path: tuple[str, ...], tame: Sanitizer) -> str:
    """`handbook.md > Brewing > Green tea`; what a title says cannot end the citation."""
    whole = " > ".join(" ".join(tame(part).translate(_BRACKETS).split()) for part in path)
    return whole if len(whole) <= _CITED_CHARS_MAX else f"{whole[: _CITED_CHARS_MAX - 1]}…"
