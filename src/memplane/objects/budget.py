"""The token budget: what an agent would load at its start, layer by layer, against what its model has room for.

Tokens are counted from above (`recall/tokens.py`); the ADR's own measure, four bytes a token, stands beside them.
"""

from collections.abc import Iterable, Iterator

import msgspec

from memplane.clock import Instant, iso, to_instant
from memplane.governance.neutral import one_line
from memplane.memory.retention import Retention, first_kept
from memplane.objects.digests import digest_files
from memplane.recall.tokens import tokens_of
from memplane.space import Space
from memplane.types import Kind, Memory, State, Turn

BYTES_PER_TOKEN = 4
"""What the ADR reckons with."""

_PAGE = 2_000
_ALL = 1_000_000
_COMFORTABLE_PERCENT = 80


class LayerSize(msgspec.Struct, frozen=True, kw_only=True):
    """What one layer takes."""

    layer: str
    days: int | None
    """How many days of it are kept; None is all there are."""
    items: int
    bytes: int
    tokens: int
    setting: str = ""
    """What makes it shorter."""

    @property
    def tokens_by_bytes(self) -> int:
        """As the ADR counts them."""
        return -(-self.bytes // BYTES_PER_TOKEN)


class Budget(msgspec.Struct, frozen=True, kw_only=True):
    """The whole table."""

    layers: tuple[LayerSize, ...]
    budget_tokens: int
    window_tokens: int
    advice: tuple[str, ...]

    @property
    def bytes(self) -> int:
        return sum(layer.bytes for layer in self.layers)

    @property
    def tokens(self) -> int:
        return sum(layer.tokens for layer in self.layers)

    @property
    def tokens_by_bytes(self) -> int:
        return -(-self.bytes // BYTES_PER_TOKEN)

    @property
    def fits(self) -> bool:
        return self.tokens <= self.budget_tokens


def budget_of(space: Space, *, summaries: Iterable[bytes] = ()) -> Budget:
    """Measure a space. Daily summaries are files that are kept elsewhere: whoever has them gives them."""
    standing = space.retention()
    policy, settings, now = standing.policy, space.settings, space.now()
    raw = measured(
        _raw_name(policy),
        (_raw_line(turn) for turn in _raw(space, policy, now)),
        days=policy.raw_days,
        setting="MEMPLANE_RETENTION_RAW_DAYS",
    )
    layers = (
        measured("All behavioral memory", (_memory_line(memory) for memory in _behavioral(space))),
        raw,
        measured(
            _named("weekly digests", policy.digest_days),
            (data.decode() for _, data in digest_files(space)),
            days=policy.digest_days,
            setting="MEMPLANE_RETENTION_DIGEST_DAYS",
        ),
        measured(
            _named("daily summaries", policy.summary_days),
            (data.decode("utf-8", "replace") for data in summaries),
            days=policy.summary_days,
            setting="MEMPLANE_RETENTION_SUMMARY_DAYS",
        ),
        measured(
            "Facts of the brief",
            (
                f"- [{entry.kind}] {entry.content}\n"
                for entry in space.brief().entries
                if not entry.behavioral
            ),
            setting="MEMPLANE_BRIEF_CHARS_MAX",
        ),
    )
    return Budget(
        layers=layers,
        budget_tokens=settings.budget_tokens,
        window_tokens=settings.budget_window_tokens,
        advice=tuple(advice(layers, settings.budget_tokens, raw_span_days=_span(space, policy, now))),
    )


def measured(layer: str, texts: Iterable[str], *, days: int | None = None, setting: str = "") -> LayerSize:
    items = size = tokens = 0
    for text in texts:
        items += 1
        size += len(text.encode("utf-8", "replace"))
        tokens += tokens_of(text)
    return LayerSize(layer=layer, days=days, items=items, bytes=size, tokens=tokens, setting=setting)


def advice(layers: Iterable[LayerSize], budget: int, *, raw_span_days: int = 0) -> Iterator[str]:
    """What to do: shorten the layers that decay anyway, the rawest first, each by no more than is needed."""
    layers = tuple(layers)
    total = sum(layer.tokens for layer in layers)
    if total <= budget:
        share = 100 * total // budget if budget else 0
        room = "comfortably" if share <= _COMFORTABLE_PERCENT else "with little room left"
        yield f"It fits {room}: {total:,} of {budget:,} tokens, {share} %."
        return
    over = total - budget
    yield f"It is {over:,} tokens over the budget of {budget:,}."
    decaying = [layer for layer in layers if layer.setting.startswith("MEMPLANE_RETENTION") and layer.tokens]
    for number, layer in enumerate(decaying):
        if over <= 0:
            return
        days = layer.days or (raw_span_days if not number else 0)
        if days <= 1:
            continue
        kept = max(1, int(days * max(0, layer.tokens - over) / layer.tokens))
        if kept >= days:
            continue
        saved = layer.tokens - layer.tokens * kept // days
        yield f"{layer.layer}: keep {kept} of {days} days ({layer.setting}={kept}); that frees about {saved:,} tokens."
        over -= saved
    if over > 0:
        largest = max(layers, key=lambda layer: layer.tokens)
        yield (
            f"About {over:,} tokens over still. The largest layer is {largest.layer!r}, {largest.tokens:,} tokens: prune "
            "what is not needed there, or raise MEMPLANE_BUDGET_TOKENS."
        )


def _raw_name(policy: Retention) -> str:
    return "All raw interactions" if policy.raw_days is None else f"{policy.raw_days} days raw interactions"


def _named(what: str, days: int | None) -> str:
    return f"All {what}" if days is None else f"{days} days {what}"


def _behavioral(space: Space) -> Iterator[Memory]:
    for kind in Kind:
        for state in (State.ACTIVE, State.CONTESTED) if kind.behavioral else ():
            yield from space.memories(kind=kind, state=state, limit=_ALL)


def _raw(space: Space, policy: Retention, now: Instant) -> Iterator[Turn]:
    """What was said in the days that are kept, the newest first."""
    since = None if policy.raw_days is None else first_kept(policy.raw_days, now)
    offset = 0
    while found := space.turns(limit=_PAGE, offset=offset):
        for turn in found:
            if since is not None and to_instant(turn.at) < since:
                return
            yield turn
        offset += len(found)


def _span(space: Space, policy: Retention, now: Instant) -> int:
    """Over how many days that goes."""
    newest = next(_raw(space, policy, now), None)
    oldest = None
    for turn in _raw(space, policy, now):
        oldest = turn
    if newest is None or oldest is None:
        return 0
    return (newest.at.date() - oldest.at.date()).days + 1


def _raw_line(turn: Turn) -> str:
    return f"{iso(turn.at)} {turn.speaker or turn.role}: {one_line(turn.text)}\n"


def _memory_line(memory: Memory) -> str:
    return f"- [{memory.kind}] {one_line(memory.line)}\n"
