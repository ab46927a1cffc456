"""Memplane under EntraBot's names, in a process of its own: alone, and in the place of parts of a real EntraBot."""

import os
import subprocess
import sys
from pathlib import Path

import memplane

SOURCE = Path(memplane.__file__).parents[1]
SHIM = SOURCE / "memplane" / "adapters" / "entrabot" / "shim"

ALONE = """
import entrabot
from entrabot.config import get_config
from entrabot.errors import TokenExpiredError
from entrabot.storage.backend import BlobBackend, LocalBackend, MemoryBackend, get_backend
from entrabot.storage.backend import acquire_agent_user_storage_token
from entrabot.storage.blob import BlobStore, ConcurrencyError
from entrabot.storage.migration import MigrationReport, migrate_local_to_backend
from entrabot.storage.persona import PersonaBackend, PersonaReport, claude_code_memory_dir
from entrabot.tools.daily_summary import (
    GRAPH_SENDMAIL_URL, archive_summary, next_run_at, render_summary_html, send_summary_email, triage_interactions
)
from entrabot.tools.interaction_log import _now, detect_channel, log_interaction, read_day
from entrabot.tools.promises import PROMISES_KEY, Promise, PromiseNotFound, PromiseStoreConflict
from entrabot.tools.promises import _get_conditional_store, add_promise, list_promises, resolve_promise

import entrabot.tools.promises as promises
assert entrabot.tools.promises is promises
assert promises.__name__ == "memplane.adapters.entrabot.tools.promises"
log_interaction(channel="terminal", direction="inbound", sender="u", summary="hi")
print(get_backend().list()[0].split("/")[0])
"""

BESIDE = """
from memplane.adapters.entrabot.overlay import install
install()
install()
import asyncio
import entrabot, entrabot.tools.teams, entrabot.mail
from entrabot.errors import TokenExpiredError
from entrabot.storage.backend import acquire_agent_user_storage_token, get_backend
from entrabot.storage.blob import BlobStore
assert entrabot.mail.backends is get_backend
assert acquire_agent_user_storage_token(None) == "token of its own tenant"
print(TokenExpiredError.__module__, BlobStore.__module__, entrabot.__version__)
"""

REAL = {
    "__init__.py": '__version__ = "0.2"\n',
    "config.py": 'def get_config():\n    return "its own tenant"\n',
    "errors.py": "class TokenExpiredError(Exception):\n    pass\n",
    "mail.py": "from entrabot.storage.backend import get_backend as backends\n",
    "storage/__init__.py": "",
    "storage/backend.py": "def get_backend():\n    raise AssertionError('was replaced')\n",
    "tools/__init__.py": "",
    "tools/teams.py": 'def acquire_agent_user_storage_token(cfg):\n    return f"token of {cfg}"\n',
}


def run(program, tmp_path, *paths):
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path),
            "ENTRABOT_DATA_DIR": str(tmp_path / "data"),
            "PYTHONPATH": os.pathsep.join(map(str, (*paths, SOURCE))),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_with_the_shim_on_the_path_every_name_is_there(tmp_path):
    """
    A program that imports EntraBot's memory finds all of it, and it works.
    """
    assert run(ALONE, tmp_path, SHIM) == ["interactions"]


def test_beside_a_real_entrabot_only_memory_is_replaced(tmp_path):
    """
    Its own sign-in gives the token, its own error is raised, and its other modules find ours.
    """
    for name, text in REAL.items():
        path = tmp_path / "site" / "entrabot" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    told = run(BESIDE, tmp_path, tmp_path / "site")

    assert told == ["entrabot.errors", "memplane.adapters.entrabot.storage.blob", "0.2"]
