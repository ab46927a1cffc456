"""The proxy door: clients of OpenAI and Anthropic change their base URL, and have memory."""

from memplane.doors.http.proxy.carrying import DOOR
from memplane.doors.http.proxy.door import door

__all__ = ["DOOR", "door"]
