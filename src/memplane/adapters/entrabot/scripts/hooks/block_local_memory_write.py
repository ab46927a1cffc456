"""A PreToolUse hook of Claude Code: memory belongs where every machine finds it, so writes to Claude Code's own memory on
this machine are refused, unless `ENTRABOT_KEEP_MEMORY_LOCAL=true`.

It runs before every edit and so imports nothing that is slow to load. Exit code 2 blocks: the decision is on stdout, and
what the model is to do instead on stderr. What it does not understand it allows.
"""

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ALLOWED, BLOCKED = 0, 2
KEEP_LOCAL = "ENTRABOT_KEEP_MEMORY_LOCAL"

_TOOLS = ("Write", "Edit", "MultiEdit", "NotebookEdit")
_PATHS = ("file_path", "notebook_path")
_INSTEAD = "mcp__persona-sati__write_memory_file"


def blocked_path(payload: Any, environment: Mapping[str, str], home: Path) -> str | None:
    """The file that must not be written; None if the call is allowed."""
    if not isinstance(payload, dict) or payload.get("tool_name") not in _TOOLS:
        return None
    if environment.get(KEEP_LOCAL, "").strip().lower() == "true":
        return None
    given = payload.get("tool_input")
    if not isinstance(given, dict):
        return None
    folder = payload.get("cwd")
    for name in _PATHS:
        path = given.get(name)
        if isinstance(path, str) and path and is_local_memory(path, home, str(folder or "")):
            return path
    return None


def is_local_memory(path: str, home: Path, folder: str = "") -> bool:
    """Whether it is below `~/.claude/projects/<project>/memory`, however the path is written."""
    projects = home / ".claude" / "projects"
    if path == "~" or path.startswith("~/"):
        path = f"{home}{path[1:]}"
    written = Path(os.path.normpath(Path(folder) / path))
    try:
        return _is_below(written, projects) or _is_below(written.resolve(), projects.resolve())
    except (OSError, ValueError, RuntimeError):
        return _is_below(written, projects)


def _is_below(path: Path, projects: Path) -> bool:
    if not path.is_relative_to(projects):
        return False
    parts = path.relative_to(projects).parts
    return len(parts) > 2 and parts[1] == "memory"  # noqa: PLR2004 - project, memory, and something in it


def reason() -> str:
    return (
        "Writes to Claude Code's local memory are disabled: it would stay on this machine. "
        f"Use {_INSTEAD} for memory, or `memplane` where it keeps this agent's memory. "
        f"Set {KEEP_LOCAL}=true to keep memory local."
    )


def main() -> int:
    try:
        payload = json.loads(sys.stdin.buffer.read().decode("utf-8", "replace") or "{}")
    except (ValueError, RecursionError):
        return ALLOWED
    path = blocked_path(payload, os.environ, Path.home())
    if path is None:
        return ALLOWED
    sys.stdout.write(json.dumps({"decision": "block", "reason": reason()}) + "\n")
    sys.stderr.write(f"blocked: {json.dumps(path)} is local memory of Claude Code. {reason()}\n")
    return BLOCKED


if __name__ == "__main__":
    sys.exit(main())
