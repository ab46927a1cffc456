"""The token budget: the size of what an agent loads at its start, by layer, compared with its model's context
window.

Tokens are estimated from above (`recall/tokens.py`). The ADR's own measure, four bytes per token, is reported as
well.
"""

from collections.abc import Iterable, Iterator
from itertools import chain, islice

import msgspec

from memplane.clock import DAY, Instant, iso, to_instant
from memplane.compaction.retention import Retention, day_start, first_retained, retention_of
from memplane.recall.tokens import tokens_of
from memplane.safety.sanitize import one_line
from memplane.space import Space
from memplane.sync.digests import digest_files, is_generated
from memplane.sync.tree.daily import summaries_of, summary_days, summary_in_part
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
    estimated: bool = False
    """Only some of it was looked at."""

    @property
    def tokens_by_bytes(self) -> int:
        """As the ADR counts them."""
        return -(-self.bytes // BYTES_PER_TOKEN)


class TokenBudget(msgspec.Struct, frozen=True, kw_only=True):
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
    def estimated(self) -> bool:
        return any(layer.estimated for layer in self.layers)

    @property
    def fits(self) -> bool:
        return self.tokens <= self.budget_tokens


def budget_of(space: Space, *, summaries: Iterable[bytes] = (), sample: int | None = None) -> TokenBudget:
    """Measure a space. `summaries` are those that another program wrote, in addition to the space's own. With
    `sample`, a layer with more items is estimated from that many of them and marked as estimated, for interactive
    callers."""
    policy, settings = retention_of(space.settings), space.settings
    layers = (
        _behavioral_layer(space, sample),
        _raw_layer(space, policy, sample),
        measured(
            _named("weekly digests", policy.digest_days),
            (data.decode() for _, data in digest_files(space)),
            days=policy.digest_days,
            setting="MEMPLANE_RETENTION_DIGEST_DAYS",
        ),
        _summary_layer(space, policy, summaries, sample),
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
    return TokenBudget(
        layers=layers,
        budget_tokens=settings.budget_tokens,
        window_tokens=settings.budget_window_tokens,
        advice=tuple(advice(layers, settings.budget_tokens, raw_span_days=_span(space, policy))),
    )


def _behavioral_layer(space: Space, sample: int | None) -> LayerSize:
    name = "All behavioral memory"
    if sample is not None:
        count, some = space.overview.behavioral(limit=sample)
        if count > sample and some:
            return scaled(measured(name, map(_memory_line, some)), count)
    return measured(name, (_memory_line(memory) for memory in _behavioral(space)))


def _raw_layer(space: Space, policy: Retention, sample: int | None) -> LayerSize:
    count = space.overview.turn_span(_since(policy, space.now())).count
    some = islice(_raw(space, policy, page=_PAGE if sample is None else sample), sample)
    layer = measured(
        _raw_name(policy), map(_raw_line, some), days=policy.raw_days, setting="MEMPLANE_RETENTION_RAW_DAYS"
    )
    return scaled(layer, count) if sample is not None and count > sample else layer


def _summary_layer(space: Space, policy: Retention, given: Iterable[bytes], sample: int | None) -> LayerSize:
    name, setting = _named("daily summaries", policy.summary_days), "MEMPLANE_RETENTION_SUMMARY_DAYS"
    others = [data.decode("utf-8", "replace") for data in given if not is_generated(data)]
    if sample is not None and (estimated := _estimated_summary(space, sample)) is not None:
        days, share, html = estimated
        one = measured(name, [html], days=policy.summary_days, setting=setting)
        return scaled(one, days, share=share)
    own = (summary.html for summary in summaries_of(space))
    return measured(name, chain(own, others), days=policy.summary_days, setting=setting)


def _estimated_summary(space: Space, sample: int) -> tuple[int, float, str] | None:
    """How many days there are, and the newest of them in part: how much larger the whole is, and what the part says. None
    where so little was said that all of it can be looked at."""
    days = summary_days(space)
    if not days or space.overview.turn_span().count <= sample:
        return None
    begin = day_start(days[-1])
    said = space.overview.turn_span(begin).count - space.overview.turn_span(begin + DAY).count
    part = summary_in_part(space, days[-1], sample)
    return None if part is None else (len(days), max(1.0, said / sample), part.html)


def measured(layer: str, texts: Iterable[str], *, days: int | None = None, setting: str = "") -> LayerSize:
    items = size = tokens = 0
    for text in texts:
        items += 1
        size += len(text.encode("utf-8", "replace"))
        tokens += tokens_of(text)
    return LayerSize(layer=layer, days=days, items=items, bytes=size, tokens=tokens, setting=setting)


def scaled(layer: LayerSize, items: int, *, share: float = 1.0) -> LayerSize:
    """What as many items would take if they were like those that were measured."""
    factor = share * items / layer.items if layer.items else 0.0
    return msgspec.structs.replace(
        layer,
        items=items,
        bytes=round(layer.bytes * factor),
        tokens=round(layer.tokens * factor),
        estimated=True,
    )


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


def _since(policy: Retention, now: Instant) -> Instant | None:
    return None if policy.raw_days is None else first_retained(policy.raw_days, now)


def _raw(space: Space, policy: Retention, *, page: int = _PAGE) -> Iterator[Turn]:
    """What was said in the days that are kept, the newest first."""
    since = _since(policy, space.now())
    offset = 0
    while found := space.turns(limit=page, offset=offset):
        for turn in found:
            if since is not None and to_instant(turn.at) < since:
                return
            yield turn
        offset += len(found)


def _span(space: Space, policy: Retention) -> int:
    """Over how many days that goes."""
    span = space.overview.turn_span(_since(policy, space.now()))
    return 0 if span.first is None or span.last is None else span.last // DAY - span.first // DAY + 1


def _raw_line(turn: Turn) -> str:
    return f"{iso(turn.at)} {turn.speaker or turn.role}: {one_line(turn.text)}\n"


def _memory_line(memory: Memory) -> str:
    return f"- [{memory.kind}] {one_line(memory.line)}\n"
