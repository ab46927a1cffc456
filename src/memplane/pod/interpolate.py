"""`${VARIABLE}` in a pod file, as Compose reads it, and the `.env` file beside it."""

import re
from collections.abc import Mapping

from memplane.errors import InvalidRequest

_VARIABLE = re.compile(
    r"\$(?:(?P<escaped>\$)|(?P<plain>[A-Za-z_]\w*)|\{(?P<name>[A-Za-z_]\w*)(?P<rule>:?[-?+])?(?P<word>[^}]*)\})",
    re.ASCII,
)
_ASSIGNMENT = re.compile(r"\s*(?:export\s+)?([A-Za-z_]\w*)\s*=\s*(.*?)\s*", re.ASCII)


def interpolate(text: str, variables: Mapping[str, str]) -> str:
    """The text with its variables; one that is not set is empty."""

    def value(found: re.Match[str]) -> str:
        if found["escaped"]:
            return "$"
        name, rule, word = found["plain"] or found["name"], found["rule"] or "", found["word"] or ""
        there = name in variables and (not rule.startswith(":") or bool(variables[name]))
        match rule[-1:]:
            case "-":
                return variables[name] if there else word
            case "+":
                return word if there else ""
            case "?" if not there:
                raise InvalidRequest(f"required variable {name} is missing a value: {word}".rstrip(": "))
        return variables.get(name, "")

    return _VARIABLE.sub(value, text)


def read_env_file(raw: bytes) -> dict[str, str]:
    """`NAME=value` a line; quotes around a value go, what is no assignment is passed over."""
    found: dict[str, str] = {}
    for line in raw.decode("utf-8", "replace").splitlines():
        match = _ASSIGNMENT.fullmatch(line)
        if match is None or line.lstrip().startswith("#"):
            continue
        value = match[2]
        if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
            value = value[1:-1]
        else:
            value = value.split(" #", 1)[0].rstrip()
        found[match[1]] = value
    return found
