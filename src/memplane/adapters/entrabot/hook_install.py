"""Add the hook to Claude Code's settings. The file belongs to the user, so the change is merged, shown and backed
up first."""

import json
import shlex
from pathlib import Path
from typing import Any, Final

from memplane.adapters.entrabot.scripts.hooks import block_local_memory_write
from memplane.adapters.mcp.install import FileChange, parsed_config, read_config
from memplane.errors import InvalidRequest

MATCHER: Final = "Write|Edit|MultiEdit|NotebookEdit"
EVENT: Final = "PreToolUse"

_SCRIPT = Path(block_local_memory_write.__file__)


def hook_command(python: str) -> str:
    """Run by path and without site packages: it runs before every edit and must start quickly."""
    return shlex.join([python, "-I", str(_SCRIPT.resolve())])


def planned_hook(path: Path, python: str) -> FileChange:
    """The settings with this hook exactly once, and everything else unchanged."""
    target = path.resolve()
    before = read_config(target)
    document = {} if before is None or not before.strip() else parsed_config(target, before)
    command = hook_command(python)
    groups = _groups(document, path)
    if before is not None and _commands(groups) == [command]:
        return FileChange(path=target, before=before, after=before)
    kept = [left for group in groups if (left := _without_own_hooks(group)) is not None]
    ours = {"matcher": MATCHER, "hooks": [{"type": "command", "command": command}]}
    document["hooks"] = document.get("hooks", {}) | {EVENT: [*kept, ours]}
    after = json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    return FileChange(path=target, before=before, after=after)


def _groups(document: dict[str, Any], path: Path) -> list[Any]:
    hooks = document.get("hooks", {})
    groups = hooks.get(EVENT, []) if isinstance(hooks, dict) else None
    if not isinstance(groups, list):
        raise InvalidRequest(f"hooks in {path} is not in Claude Code's format; fix the file first")
    return groups


def _is_own_hook(hook: Any) -> bool:
    return isinstance(hook, dict) and _SCRIPT.name in str(hook.get("command", ""))


def _hooks(group: Any) -> list[Any]:
    hooks = group.get("hooks") if isinstance(group, dict) else None
    return hooks if isinstance(hooks, list) else []


def _commands(groups: list[Any]) -> list[str]:
    """The existing commands that run this hook, with any Python."""
    return [str(hook["command"]) for group in groups for hook in _hooks(group) if _is_own_hook(hook)]


def _without_own_hooks(group: Any) -> Any:
    """A group of hooks without this one; None if nothing is left."""
    hooks = _hooks(group)
    if not any(_is_own_hook(hook) for hook in hooks):
        return group
    left = [hook for hook in hooks if not _is_own_hook(hook)]
    return {**group, "hooks": left} if left else None
