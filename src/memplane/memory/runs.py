"""Runs of packs and pipelines, the plans made for an intent, and the defaults learned from them.

Runs and plans are keyed rows in reserved categories: only the engine writes them, and search and brief leave them out.
A run expires after 30 days."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Self

import msgspec

from memplane.clock import SECOND, Instant
from memplane.ledger.payloads import PutPayload

PLAN_HISTORY = "plan_history"

_GROUPS_MAX = 25
_TOOLS_MAX = 5
_MODELS_MAX = 3


class PlanStep(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One call a plan asks for."""

    order: int
    tool: str
    args_sha: str = ""


class PlanRun(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One plan. Intent and arguments are kept as hashes only."""

    intent_sha: str
    outcome: str
    at_unix: int
    complexity: str = ""
    steps: tuple[PlanStep, ...] = ()
    duration_ms: int = 0
    model: str = ""


class PlanGroup(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """All plans for one intent."""

    intent_sha: str
    count: int
    complexity: str = ""
    """From the newest plan that names it."""
    top_tools: tuple[str, ...] = ()
    last_unix: int = 0
    models: tuple[str, ...] = ()


def group_plans(values: Iterable[str]) -> list[PlanGroup]:
    """Group rows; unreadable ones are skipped."""
    by_intent: defaultdict[str, list[PlanRun]] = defaultdict(list)
    for value in values:
        try:
            plan = msgspec.json.decode(value, type=PlanRun)
        except msgspec.DecodeError:
            continue
        by_intent[plan.intent_sha].append(plan)
    groups = [_group(intent, plans) for intent, plans in by_intent.items()]
    groups.sort(key=lambda group: (-group.count, -group.last_unix, group.intent_sha))
    return groups[:_GROUPS_MAX]


def _group(intent: str, plans: Sequence[PlanRun]) -> PlanGroup:
    newest_first = sorted(plans, key=lambda plan: -plan.at_unix)
    return PlanGroup(
        intent_sha=intent,
        count=len(plans),
        complexity=next((plan.complexity for plan in newest_first if plan.complexity), ""),
        top_tools=_commonest((step.tool for plan in plans for step in plan.steps), _TOOLS_MAX),
        last_unix=newest_first[0].at_unix,
        models=_commonest((plan.model for plan in plans if plan.model), _MODELS_MAX),
    )


def _commonest(names: Iterable[str], most: int) -> tuple[str, ...]:
    counts = Counter(names)
    return tuple(sorted(counts, key=lambda name: (-counts[name], name))[:most])


PACK_HISTORY = "pack_history"
PIPELINE_HISTORY = "pipeline_history"
RUN_TTL = timedelta(days=30)

LEARNABLE_INPUTS = frozenset(
    {
        "persona",
        "audience",
        "angle",
        "model",
        "theme",
        "voice",
        "persona_used",
        "kind",
        "format",
        "title",
        "author",
    }
)
_DEFAULTS_MAX = 12
_FINDINGS_STORED_MAX = 50
_FINDINGS_LISTED_MAX = 20
_RECENT_MAX = 200
_SUCCESSES = {PACK_HISTORY: frozenset({"ok"}), PIPELINE_HISTORY: frozenset({"ok", "succeeded"})}


class RunFinding(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something a lint, inspection or validation reported."""

    code: str
    severity: str = ""
    file: str = ""


class PackRun(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One call of a pack."""

    pack: str
    outcome: str
    at_unix: int
    version: str = ""
    duration_ms: int = 0
    learn_inputs: dict[str, str] = {}
    findings: tuple[RunFinding, ...] = ()

    @classmethod
    def of_call(
        cls,
        *,
        pack: str,
        outcome: str,
        at_unix: int,
        inputs: Mapping[str, Any],
        output: Mapping[str, Any],
        version: str = "",
        duration_ms: int = 0,
    ) -> Self:
        """The run of a call with these inputs and this output, keeping of both only what Helmdeck learns from."""
        return cls(
            pack=pack,
            outcome=outcome,
            at_unix=at_unix,
            version=version,
            duration_ms=duration_ms,
            learn_inputs=learnable(inputs),
            findings=findings_in(output),
        )


class PipelineRun(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One run of a pipeline."""

    pipeline: str
    run_id: str
    outcome: str
    at_unix: int
    duration_ms: int = 0
    learn_inputs: dict[str, str] = {}


class LearnedDefaults(msgspec.Struct, frozen=True, kw_only=True):
    """The usual values of one pack or pipeline."""

    id: str
    runs: int
    last_used_unix: int
    common_inputs: dict[str, str]


class CommonFinding(msgspec.Struct, frozen=True, kw_only=True):
    """A finding that recurs."""

    code: str
    pack: str
    severity: str
    occurrence_count: int
    last_seen_unix: int


class RecentRun(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One run, for a list."""

    kind: str
    key: str
    id: str
    outcome: str
    at_unix: int
    duration_ms: int = 0
    learn_inputs: dict[str, str] = {}


class Defaults(msgspec.Struct, frozen=True, kw_only=True):
    """Defaults learned from earlier runs."""

    packs: tuple[LearnedDefaults, ...] = ()
    pipelines: tuple[LearnedDefaults, ...] = ()
    common_findings: tuple[CommonFinding, ...] = ()
    recent: tuple[RecentRun, ...] = ()


def learnable(inputs: Mapping[str, Any]) -> dict[str, str]:
    """The inputs that defaults are learned from: the allowed names, with values that are non-empty text."""
    return {
        name: value
        for name, value in inputs.items()
        if name in LEARNABLE_INPUTS and isinstance(value, str) and value
    }


def findings_in(output: Mapping[str, Any]) -> tuple[RunFinding, ...]:
    """The findings of a pack's output, from each place where Helmdeck's packs report them."""
    found: list[Any] = list(_items(output, "findings"))
    for section in ("lint", "inspect", "validate"):
        inner = output.get(section)
        if isinstance(inner, Mapping):
            for name in ("findings", "issues", "errors", "warnings"):
                found.extend(_items(inner, name))
    return tuple(
        RunFinding(
            code=str(item["code"]),
            severity=str(item.get("severity") or item.get("level") or ""),
            file=str(item.get("file") or ""),
        )
        for item in found
        if isinstance(item, Mapping) and item.get("code")
    )[:_FINDINGS_STORED_MAX]


def run_row(run: PackRun | PipelineRun | PlanRun, at: Instant) -> PutPayload:
    """The keyed row a run is kept as."""
    match run:
        case PackRun():
            category, name = PACK_HISTORY, run.pack
        case PipelineRun():
            category, name = PIPELINE_HISTORY, run.pipeline
        case PlanRun():
            category, name = PLAN_HISTORY, run.intent_sha
    return PutPayload(
        key=f"{category}/{name}/{at * 1_000:020d}",
        value=msgspec.json.encode(run).decode(),
        category=category,
        at=at,
        expires=at + int(RUN_TTL.total_seconds()) * SECOND,
    )


def learn(rows: Iterable[tuple[str, str, str]]) -> Defaults:
    """Defaults from (category, key, value) rows; unreadable rows are skipped."""
    packs: list[tuple[str, PackRun]] = []
    pipelines: list[tuple[str, PipelineRun]] = []
    for category, key, value in rows:
        try:
            if category == PACK_HISTORY:
                packs.append((key, msgspec.json.decode(value, type=PackRun)))
            elif category == PIPELINE_HISTORY:
                pipelines.append((key, msgspec.json.decode(value, type=PipelineRun)))
        except msgspec.DecodeError:
            continue
    recent = [
        *(_recent("pack", key, run.pack, run) for key, run in packs),
        *(_recent("pipeline", key, run.pipeline, run) for key, run in pipelines),
    ]
    recent.sort(key=lambda item: (-item.at_unix, item.key))
    return Defaults(
        packs=_usual((run.pack, run) for _, run in packs if run.outcome in _SUCCESSES[PACK_HISTORY]),
        pipelines=_usual(
            (run.pipeline, run) for _, run in pipelines if run.outcome in _SUCCESSES[PIPELINE_HISTORY]
        ),
        common_findings=_common_findings([run for _, run in packs]),
        recent=tuple(recent[:_RECENT_MAX]),
    )


def _usual(runs: Iterable[tuple[str, PackRun | PipelineRun]]) -> tuple[LearnedDefaults, ...]:
    by_id: defaultdict[str, list[PackRun | PipelineRun]] = defaultdict(list)
    for id_, run in runs:
        by_id[id_].append(run)
    learned = [
        LearnedDefaults(
            id=id_,
            runs=len(group),
            last_used_unix=max(run.at_unix for run in group),
            common_inputs=_common_inputs(group),
        )
        for id_, group in by_id.items()
    ]
    learned.sort(key=lambda item: (-item.runs, -item.last_used_unix, item.id))
    return tuple(learned[:_DEFAULTS_MAX])


def _common_inputs(runs: Sequence[PackRun | PipelineRun]) -> dict[str, str]:
    """The most common value of each input; ties go to the first alphabetically."""
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for run in runs:
        for name, value in run.learn_inputs.items():
            counts[name][value] += 1
    return {
        name: min(values, key=lambda value: (-values[value], value))
        for name, values in sorted(counts.items())
    }


def _common_findings(runs: Sequence[PackRun]) -> tuple[CommonFinding, ...]:
    counts: Counter[str] = Counter()
    latest: dict[str, CommonFinding] = {}
    for run in sorted(runs, key=lambda run: run.at_unix):
        for finding in run.findings:
            counts[finding.code] += 1
            latest[finding.code] = CommonFinding(
                code=finding.code,
                pack=run.pack,
                severity=finding.severity,
                occurrence_count=counts[finding.code],
                last_seen_unix=run.at_unix,
            )
    ranked = sorted(latest.values(), key=lambda item: (-item.occurrence_count, item.code))
    return tuple(ranked[:_FINDINGS_LISTED_MAX])


def _recent(kind: str, key: str, id_: str, run: PackRun | PipelineRun) -> RecentRun:
    return RecentRun(
        kind=kind,
        key=key,
        id=id_,
        outcome=run.outcome,
        at_unix=run.at_unix,
        duration_ms=run.duration_ms,
        learn_inputs=run.learn_inputs,
    )


def _items(mapping: Mapping[str, Any], name: str) -> Iterable[Any]:
    value = mapping.get(name)
    return value if isinstance(value, list | tuple) else ()
