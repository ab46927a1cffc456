"""`claude_memory_sync pull | push | push-one PATH`: copy Claude Code's memory of this project to and from the
cloud.

Does nothing unless `ENTRABOT_PERSONA_SYNC` is `on`. Always exits with 0, because Claude Code runs it as a hook.
"""

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from memplane.adapters.entrabot.environment import get_config
from memplane.adapters.entrabot.storage import persona
from memplane.adapters.entrabot.storage.backend import get_backend
from memplane.adapters.entrabot.storage.persona import claude_code_memory_dir
from memplane.sync.backend import TextBackend


def _resolve_backend() -> TextBackend:
    """Replaced by tests."""
    return get_backend()


@contextmanager
def _opened() -> Iterator[TextBackend]:
    """The backend, whose cache is sent when the process ends."""
    yield _resolve_backend()


def _resolve_memory_dir() -> Path:
    """Replaced by tests."""
    return claude_code_memory_dir(Path.cwd())


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="claude_memory_sync",
        description="Copy Claude Code's memory of this project to and from the cloud.",
    )
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("pull", help="replace local files with the cloud's")
    commands.add_parser("push", help="upload files that the cloud does not have")
    one = commands.add_parser("push-one", help="upload one file and replace the cloud's version")
    one.add_argument("path", help="the file")
    given = parser.parse_args(argv)
    if not get_config().persona_sync:
        return 0
    match given.command:
        case "pull":
            persona.pull(_opened, _resolve_memory_dir)
        case "push":
            persona.push(_opened, _resolve_memory_dir)
        case _:
            persona.push_one(_opened, _resolve_memory_dir, Path(given.path))
    return 0


if __name__ == "__main__":
    sys.exit(main())
