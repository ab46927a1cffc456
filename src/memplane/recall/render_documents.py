"""What documents say, as lines of a recall: each cites the document and the section it comes from."""

from collections.abc import Iterator

from memplane.recall.documents import Consulted
from memplane.recall.render import Group, Share, Tamer
from memplane.recall.result import DEGRADED, DocumentTold, SpanHit, Strategy

_CITED_CHARS_MAX = 200
_BRACKETS = str.maketrans("[]", "()")


def share_of(consulted: Consulted, memory_percent: int, tame: Tamer) -> Share:
    """The lines, and the room they may take: half as much is kept for memory where documents were asked for."""
    asked_for = consulted.strategy not in (None, Strategy.LOCAL)
    short = [*([DEGRADED] if consulted.degraded else []), *_short(consulted, tame)]
    passages = [passage(hit, tame) for hit in consulted.spans]
    groups: list[Group] = [("Documents in short:", short)]
    return Share(
        short=groups,
        passages=[("From documents:", passages)],
        memory_percent=max(0, min(100, memory_percent)) // (2 if asked_for else 1),
        first=asked_for,
    )


def _short(consulted: Consulted, tame: Tamer) -> Iterator[str]:
    """A section that was asked for is told before the document it is in."""
    for document in consulted.documents:
        own = [f"- [{cited((document.name,), tame)}] {tame.short(said)}" for said in _said(document)]
        if consulted.strategy is Strategy.SECTION:
            yield from _sections(document, tame)
            yield from own
        else:
            yield from own
            yield from _sections(document, tame)


def _said(document: DocumentTold) -> Iterator[str]:
    if document.distillation:
        yield document.distillation


def _sections(document: DocumentTold, tame: Tamer) -> Iterator[str]:
    for section in document.sections:
        if section.distillation:
            yield f"- [{cited((document.name, *section.path), tame)}] {tame.short(section.distillation)}"


def passage(hit: SpanHit, tame: Tamer) -> str:
    return f"- [{cited((hit.document_name, *hit.section), tame)}] {tame.short(hit.span.text).strip()}"


def cited(path: tuple[str, ...], tame: Tamer) -> str:
    """`handbook.md > Brewing > Green tea`; what a title says cannot end the citation."""
    whole = " > ".join(" ".join(tame(part).translate(_BRACKETS).split()) for part in path)
    return whole if len(whole) <= _CITED_CHARS_MAX else f"{whole[: _CITED_CHARS_MAX - 1]}…"
