"""Health checks of a space: damage, junk, secrets and loops."""

from collections import Counter

import msgspec

from memplane.safety.fence import strip_injected
from memplane.safety.redact import find_secrets
from memplane.space import Space

_SAMPLE = 10_000
_DUPLICATES_RATE_MAX = 0.1


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one check."""

    name: str
    ok: bool
    detail: str
    figures: dict[str, float] = {}


class Diagnosis(msgspec.Struct, frozen=True, kw_only=True):
    """The results of all checks."""

    space: str
    checks: tuple[Check, ...]

    @property
    def ok(self) -> bool:
        return all(check.ok for check in self.checks)


def examine(space: Space) -> Diagnosis:
    return Diagnosis(
        space=space.owner,
        checks=(
            _files(space),
            _ledger(space),
            _projection(space),
            _vectors(space),
            _duplicates(space),
            _stale(space),
            *_texts(space),
        ),
    )


def _files(space: Space) -> Check:
    problems = space.ledger.check()
    return Check(name="files", ok=not problems, detail="; ".join(problems[:3]) or "the database is intact")


def _ledger(space: Space) -> Check:
    found = space.ledger.verify()
    detail = "; ".join(found.problems[:3]) or f"{found.entries} entries verified"
    return Check(
        name="ledger", ok=found.ok, detail=detail, figures={"entries": found.entries, "erased": found.erased}
    )


def _projection(space: Space) -> Check:
    lag, unreadable = space.overview.lag(), space.ledger.unreadable()
    parts = [f"{lag} entries are not indexed yet; the next read continues"] if lag else []
    parts += [f"{unreadable} entries are unreadable and exist in the ledger only"] if unreadable else []
    figures: dict[str, float] = {"lag": lag, "unreadable": unreadable}
    return Check(
        name="projection",
        ok=not (lag or unreadable),
        detail="; ".join(parts) or "memories and indexes are up to date",
        figures=figures,
    )


def _vectors(space: Space) -> Check:
    """Pending vectors are not a problem: until they are computed, texts are found by their words."""
    found = space.overview.embedding()
    if found.model is None:
        return Check(name="vectors", ok=True, detail="no embedding model; recall uses words only")
    detail = f"every vector is of {found.model}"
    if found.pending or found.replaces is not None:
        detail = (
            f"{found.turns:,} turns, {found.memories:,} memories and {found.spans:,} spans are not embedded with "
            f"{found.model} yet"
            + (f", which replaces {found.replaces}" if found.replaces is not None else "")
        )
        detail += "; a server does this in the background, or run `memplane enrich`"
    return Check(name="vectors", ok=True, detail=detail, figures={"pending": found.pending})


def _duplicates(space: Space) -> Check:
    texts = [memory.text.strip().casefold() for memory in space.overview.newest_memories(_SAMPLE)]
    copies = sum(count - 1 for count in Counter(texts).values())
    rate = copies / len(texts) if texts else 0.0
    detail = f"{copies} of the newest {len(texts)} memories are duplicates"
    return Check(name="duplicates", ok=rate < _DUPLICATES_RATE_MAX, detail=detail, figures={"rate": rate})


def _stale(space: Space) -> Check:
    sizes = space.overview.stats()
    rate = (sizes.expired + sizes.superseded) / sizes.memories if sizes.memories else 0.0
    detail = f"{sizes.expired} expired (`memplane sweep`), {sizes.superseded} superseded (`memplane purge`)"
    return Check(name="stale", ok=sizes.expired == 0, detail=detail, figures={"rate": rate})


def _texts(space: Space) -> list[Check]:
    texts = [memory.text for memory in space.overview.newest_memories(_SAMPLE)]
    texts += [turn.text for turn in space.turns(limit=_SAMPLE)]
    secret = sum(bool(find_secrets(text)) for text in texts)
    looped = sum(strip_injected(text) != text for text in texts)
    count = len(texts) or 1
    return [
        Check(
            name="secrets",
            ok=not secret,
            detail=f"{secret} texts contain a likely secret"
            + ("; `memplane replay` redacts them" if secret else ""),
            figures={"rate": secret / count},
        ),
        Check(
            name="loops",
            ok=not looped,
            detail=f"{looped} texts contain injected memory"
            + ("; `memplane replay` removes it" if looped else ""),
            figures={"rate": looped / count},
        ),
    ]
