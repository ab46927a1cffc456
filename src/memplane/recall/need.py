"""Whether memory helps with a turn at all.

This cannot be read from similarity: in a space of thirty memories the nearest one is as near to "who painted this?" as to "what
should I cook for her?". The turn itself makes the difference. Functions of its vector and of its words, fitted on turns that
people wrote for both kinds, give the signals `personal` and `wording`; the best matches in the space give the others.
"""

import math
from collections.abc import Sequence

from memplane.clock import DAY
from memplane.recall.breadth import Breadth, breadth_of
from memplane.recall.calibration import Calibration, Signals, wording
from memplane.recall.fact_ranking import RankedFact
from memplane.recall.query_context import PreparedQuery
from memplane.recall.result import Routing
from memplane.recall.turn_ranking import RankedTurn

_HELD_MIN = 0.6
_ALONE_SHARE = 0.6
_DATED = 2.0
"""The signal `date` of a turn said in the period; one said in the same days of another year has less."""


def need_signals(
    prepared: PreparedQuery,
    said: Sequence[RankedTurn],
    known: Sequence[RankedFact],
    routing: Routing,
    calibration: Calibration,
) -> Signals:
    """What the probability that memory helps is computed from."""
    found = [turn.signals for turn in said] + [fact.signals for fact in known]
    words = max((signals.get("words", 0.0) for signals in found), default=0.0)
    nearness = max((signals.get("nearness", 0.0) for signals in found), default=0.0)
    return {
        "personal": _personal(prepared, calibration),
        "wording": wording()(prepared.text),
        "nearness": nearness,
        "match": match_signal(nearness, calibration.match_min),
        "words": words,
        "held": _held(words, prepared),
        "speaker": float(bool(routing.speakers)),
        "time": float(routing.temporal_intent is not None),
        "then": _then(prepared, found),
        "summary": float(breadth_of(prepared.text) is Breadth.SUMMARY),
        "length": math.log1p(len(prepared.question.words)),
    }


def match_signal(nearness: float, match_min: float) -> float:
    """How much nearer the best match is than to turns that need no memory."""
    return max(0.0, nearness - match_min)


def _held(words: float, prepared: PreparedQuery) -> float:
    """Most words of a turn occur somewhere in a large space; nearly all of them in one place is a match, unless they are common
    or there is only one."""
    share = max(0.0, words - _HELD_MIN) / (1 - _HELD_MIN)
    alone = _ALONE_SHARE if len(prepared.question.words) == 1 else 1.0
    return share * prepared.relevance.distinctiveness**2 * alone


def _then(prepared: PreparedQuery, found: Sequence[Signals]) -> float:
    """1 if the query names a time before today and something found is from then. Of today there is always something."""
    today = prepared.where.now - DAY
    if not any(period.begin < today for period in prepared.analysis.periods):
        return 0.0
    return float(
        any(signals.get("time", 0.0) >= 1.0 or signals.get("date", 0.0) >= _DATED for signals in found)
    )


def _personal(prepared: PreparedQuery, calibration: Calibration) -> float:
    if prepared.query is None or calibration.personal is None:
        return 0.0
    return calibration.personal(prepared.query)
