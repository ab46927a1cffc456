"""Settings out of the environment of whoever imports EntraBot: there is no `main` of ours to hand them down."""

import os
from pathlib import Path

from memplane.adapters.entrabot.config import ENV_FILE, EntraBotConfig, config_from, read_env

__all__ = ["EntraBotConfig", "get_config"]


def get_config() -> EntraBotConfig:
    """As the environment is now, and for what it does not say the file it names: nothing is remembered between calls."""
    file = os.environ.get(ENV_FILE)
    said = read_env(Path(file).expanduser()) if file else {}
    return config_from({**said, **os.environ})
