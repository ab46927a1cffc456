"""English time expressions, told as absolute ranges against a reference: a grammar of our own, and deterministic."""

from memplane.extract.time.calendar import Granularity, Kind, Prefer, TimeMention
from memplane.extract.time.find import find_times

__all__ = ["Granularity", "Kind", "Prefer", "TimeMention", "find_times"]
