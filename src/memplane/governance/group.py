"""Names of groups. They become names of files, so the rule is strict: nothing in one can lead anywhere else."""

import re

from memplane.errors import InvalidRequest

_GROUP = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_-]{0,127}")
_SHOWN_CHARS_MAX = 128


def check_group(name: str) -> str:
    if not isinstance(name, str) or not _GROUP.fullmatch(name):
        shown = str(name)[:_SHOWN_CHARS_MAX]
        raise InvalidRequest(f'Invalid group name: "{shown}". Only [a-zA-Z0-9_-] allowed.', field="group")
    return name
