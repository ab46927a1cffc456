"""How a memory surfaces: always (hot), when relevant (warm), as history only (cold)."""

from memplane.types import Tier

HOT_IMPORTANCE = 0.8
WARM_IMPORTANCE = 0.2
_OFTEN = 10
"""This many recalls are worth as much as being important from the start."""
_LIFT = 0.2


def tier_of(*, importance: float, accesses: int = 0, hot: bool = False, current: bool = True) -> Tier:
    """`hot` is the predicate's own wish; `current` is False for what was superseded or has expired."""
    if not current:
        return Tier.COLD
    lifted = importance + _LIFT * min(max(accesses, 0), _OFTEN) / _OFTEN
    if lifted < WARM_IMPORTANCE:
        return Tier.COLD
    if lifted >= HOT_IMPORTANCE or (hot and lifted >= WARM_IMPORTANCE * 2):
        return Tier.HOT
    return Tier.WARM
