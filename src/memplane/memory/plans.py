"""Plans that were made for an intent, and what they have in common.

A plan is a keyed row in a reserved category, as a run is (`runs.py`): only the engine writes it.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

import msgspec

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
    """One plan. What was intended and with which arguments is kept as a hash only."""

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
    """Of the newest plan that says it."""
    top_tools: tuple[str, ...] = ()
    last_unix: int = 0
    models: tuple[str, ...] = ()


def group_plans(values: Iterable[str]) -> list[PlanGroup]:
    """Groups from rows; one that cannot be read tells nothing."""
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
