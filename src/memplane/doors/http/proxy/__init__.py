"""The proxy door: clients of OpenAI and Anthropic change their base URL, and have memory."""

from memplane.doors.http.proxy.door import door
from memplane.doors.http.proxy.exchange import DOOR

__all__ = ["DOOR", "door"]
