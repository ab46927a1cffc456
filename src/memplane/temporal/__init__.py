"""English time expressions, told as absolute ranges against a reference: a grammar of our own, and deterministic."""

from memplane.temporal.find import find_times
from memplane.temporal.mention import Granularity, Kind, Prefer, TimeMention

__all__ = ["Granularity", "Kind", "Prefer", "TimeMention", "find_times"]
