"""Settings from the process environment. EntraBot's programs import this package directly, so no `main` passes
settings down."""

import os
from pathlib import Path

from memplane.adapters.entrabot.config import ENV_FILE, EntraBotConfig, config_from, read_env

__all__ = ["EntraBotConfig", "get_config"]


def get_config() -> EntraBotConfig:
    """The current environment, completed by the file that it names. Nothing is cached between calls."""
    file = os.environ.get(ENV_FILE)
    said = read_env(Path(file).expanduser()) if file else {}
    return config_from({**said, **os.environ})
