"""English time expressions, resolved to absolute ranges against a reference time: a deterministic grammar."""

from memplane.extract.time.calendar import Granularity, Kind, Prefer, TimeMention
from memplane.extract.time.find import find_times

__all__ = ["Granularity", "Kind", "Prefer", "TimeMention", "find_times"]
