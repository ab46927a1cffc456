"""The proxy door: clients of OpenAI and Anthropic change their base URL, and have memory."""

from memplane.doors.http.proxy.door import DOOR, door

__all__ = ["DOOR", "door"]
