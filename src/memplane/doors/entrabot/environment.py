"""Settings out of the environment of whoever imports EntraBot: there is no `main` of ours to hand them down."""

import os

from memplane.doors.entrabot.config import EntraBotConfig, config_from

__all__ = ["EntraBotConfig", "get_config"]


def get_config() -> EntraBotConfig:
    """As the environment is now: nothing is remembered between calls."""
    return config_from(os.environ)
