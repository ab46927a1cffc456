"""A token for the storage account of the agent's user.

EntraBot requests one in three steps with its certificate; a program that has EntraBot's
`acquire_agent_user_storage_token` uses that function instead. Otherwise the token comes from
`ENTRABOT_STORAGE_TOKEN`, or from Azure's command line for the signed-in user.
"""

import json
import shutil
import subprocess
import threading
import time
from typing import Any, Final

from memplane.adapters.entrabot.config import EntraBotConfig
from memplane.adapters.entrabot.errors import TokenExpiredError

STORAGE_SCOPE: Final = "https://storage.azure.com/.default"

_CACHE_S = 300.0
"""Azure's command line takes a second, and every request needs a token, so tokens are cached."""
_MARGIN_S = 120.0
_PATIENCE_S = 60

_lock = threading.Lock()
_cached: dict[str, tuple[float, str]] = {}


def acquire_agent_user_storage_token(cfg: EntraBotConfig) -> str:
    """A bearer token for blobs. Raises `TokenExpiredError` if there is none."""
    if cfg.storage_token:
        return cfg.storage_token
    tenant = cfg.tenant_id or ""
    with _lock:
        until, token = _cached.get(tenant, (0.0, ""))
        if time.monotonic() >= until:
            token, lifetime_s = _from_command_line(tenant)
            _cached[tenant] = (time.monotonic() + min(_CACHE_S, lifetime_s - _MARGIN_S), token)
        return token


def _from_command_line(tenant: str) -> tuple[str, float]:
    program = shutil.which("az")
    if program is None:
        raise TokenExpiredError(
            "there is no storage token: set ENTRABOT_STORAGE_TOKEN, or install Azure's `az` and sign in"
        )
    asked = [program, "account", "get-access-token", "--scope", STORAGE_SCOPE, "--output", "json"]
    try:
        done = subprocess.run(  # noqa: S603 - the arguments are ours, the program is the user's `az`
            [*asked, *(["--tenant", tenant] if tenant else [])],
            capture_output=True,
            text=True,
            check=False,
            timeout=_PATIENCE_S,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired) as exc:
        raise TokenExpiredError(
            f"`az account get-access-token` did not answer: {type(exc).__name__}"
        ) from exc
    if done.returncode:
        raise TokenExpiredError(f"`az account get-access-token` failed: {done.stderr.strip()}")
    answer = _answer(done.stdout)
    token, expires = answer.get("accessToken"), answer.get("expires_on")
    if not isinstance(token, str) or not token:
        raise TokenExpiredError("`az account get-access-token` answered without a token")
    return token, float(expires) - time.time() if isinstance(expires, int | float) else _CACHE_S


def _answer(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
