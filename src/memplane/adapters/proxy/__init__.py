"""The proxy door: clients of OpenAI and Anthropic change their base URL, and have memory."""

from memplane.adapters.proxy.forward import DOOR
from memplane.adapters.proxy.routes import door

__all__ = ["DOOR", "door"]
