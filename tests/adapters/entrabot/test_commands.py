"""`memplane entrabot …`: to the cloud and back, and what EntraBot keeps."""

import hashlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from azure_cli import MISSING, fake_az
from blob_server import CONTAINER, TOKEN, BlobServer
from command_line import the_app
from memplane.__main__ import open_plane
from memplane.adapters.entrabot import moving
from memplane.adapters.entrabot.config import config_from, read_env, write_env
from memplane.adapters.entrabot.storage.backend import backend_for
from memplane.adapters.entrabot.storage.local import LocalBackend
from memplane.adapters.entrabot.storage.persona import claude_code_memory_dir
from memplane.errors import InvalidRequest, RemoteUnavailable
from memplane.sync import manifest
from memplane.sync.local import LocalObjects
from memplane.terminal.call import Wiring

DATA = {
    "interactions/2026-04-17.jsonl": '{"id": "1"}\n',
    "summaries/2026-04-16.html": "<p>Zoë</p>",
    "watched_chats": "a\nb\n",
    "email_cursor.txt": "2026-04-17T20:00:00Z",
}
PERSONA = {"MEMORY.md": "# Index\n", "user_role.md": "---\nname: role\n---\nArchitect\r\n"}
ALL = DATA | {f"claude_memory/{name}": text for name, text in PERSONA.items()}


class Bot:
    """An EntraBot's machine: its files, its settings, and `memplane entrabot` on it."""

    def __init__(self, folder):
        self.home = folder / "home"
        self.project = folder / "project"
        self.data = self.home / ".entrabot" / "data"
        self.memory = claude_code_memory_dir(self.project, home=self.home)
        self.env_file = self.project / ".env"
        self.environment = {"HOME": str(self.home)}
        self.project.mkdir()

    def fill(self):
        for root, files in ((self.data, DATA), (self.memory, PERSONA)):
            for name, text in files.items():
                path = root / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(text.encode())
        return self

    def digest(self):
        return {
            str(path): (hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mtime_ns)
            for path in self.home.rglob("*")
            if path.is_file()
        }

    def __call__(self, *arguments, stdin=""):
        wiring = Wiring(open=open_plane, environment=self.environment, actor="tester")
        return CliRunner(env={"COLUMNS": "200"}).invoke(
            the_app(),
            ["entrabot", *arguments],
            input=stdin,
            obj=wiring,
            prog_name="memplane",
            catch_exceptions=False,
        )


@pytest.fixture
def bot(tmp_path, monkeypatch):
    bot = Bot(tmp_path)
    monkeypatch.chdir(bot.project)
    return bot


@pytest.fixture
def cloud(tmp_path):
    return LocalObjects(tmp_path / "cloud")


@pytest.fixture
def blob_server():
    serving = BlobServer()
    yield serving
    serving.close()


def texts(store):
    return {
        item.key: store.get(item.key).data.decode() for item in store.list() if item.key != "manifest.json"
    }


# Moving


def test_a_first_run_asks_with_the_size_uploads_and_verifies(bot, cloud):
    """
    Everything is there byte for byte, the manifest says so, and the files here were only read.
    """
    before = bot.fill().digest()

    done = bot("migrate", "--to", cloud.url, stdin="y\n")

    assert done.exit_code == 0, done.stderr
    kilobytes = sum(
        int(subprocess.check_output(["du", "-sk", root]).split()[0]) for root in (bot.data, bot.memory)
    )
    asked = f"  Upload existing local memory (~{kilobytes} KB, agent data + Claude Code persona memory) to blob? [y/N] "
    assert asked in done.stderr
    characters = sum(map(len, ALL.values()))
    assert done.stdout.splitlines() == [
        f"Copied: {len(ALL)} files ({characters} bytes)",
        "Skipped (already in cloud): 0",
        f"Verified against the manifest: {len(ALL)} files",
    ]
    assert texts(cloud) == ALL
    entries = manifest.read(cloud)[0].entries
    assert {key: (entry.size, entry.sha256) for key, entry in entries.items()} == {
        key: (len(text.encode()), hashlib.sha256(text.encode()).hexdigest()) for key, text in ALL.items()
    }
    assert bot.digest() == before


@pytest.mark.parametrize(("kept", "name"), [("data", "agent data"), ("memory", "Claude Code persona memory")])
def test_the_question_names_what_there_is(bot, cloud, kept, name):
    """
    Not everybody has both.
    """
    root = getattr(bot, kept)
    root.mkdir(parents=True)
    (root / "x.md").write_text("x")

    assert f"KB, {name}) to blob?" in bot("migrate", "--to", cloud.url, stdin="n\n").stderr


@pytest.mark.parametrize("answer", ["", "\n", "n\n", "yes\n", "no\n", "j\n"])
def test_only_a_single_y_is_a_yes(bot, cloud, answer):
    """
    Anything else leaves everything where it is.
    """
    bot.fill()

    done = bot("migrate", "--to", cloud.url, stdin=answer)

    assert done.exit_code == 0
    assert texts(cloud) == {}


def test_without_memory_nobody_is_asked(bot, cloud):
    """
    There is nothing to upload.
    """
    done = bot("migrate", "--to", cloud.url)

    assert (done.exit_code, "[y/N]" in done.stderr) == (0, False)


def test_what_is_there_is_left_alone_and_named_where_it_differs(bot, cloud):
    """
    A second machine brings what is missing, and overwrites nothing.
    """
    bot.fill()
    cloud.put("watched_chats", b"theirs\n")
    cloud.put("email_cursor.txt", DATA["email_cursor.txt"].encode())

    done = bot("migrate", "--to", cloud.url, "--yes", "--json")

    told = json.loads(done.stdout)
    assert (told["copied"], told["skipped"], told["differ"]) == (4, 2, ["watched_chats"])
    assert texts(cloud) == ALL | {"watched_chats": "theirs\n"}
    assert "watched_chats differs from the file in the cloud" in done.stderr


def test_a_second_run_changes_nothing(bot, cloud):
    """
    Not even the manifest.
    """
    bot.fill()
    bot("migrate", "--to", cloud.url, "--yes")
    before = {item.key: item.version for item in cloud.list()}

    done = bot("migrate", "--to", cloud.url, "--yes")

    assert "Copied: 0 files (0 bytes)\nSkipped (already in cloud): 6" in done.stdout
    assert {item.key: item.version for item in cloud.list()} == before


def test_a_file_that_cannot_be_copied_makes_it_incomplete(bot, cloud):
    """
    Exit code 2; the others are there, and a second run completes it.
    """
    bot.fill()
    (bot.data / "picture.png").write_bytes(b"\xff")

    done = bot("migrate", "--to", cloud.url, "--yes")

    assert done.exit_code == 2
    assert "picture.png: " in done.stderr
    assert "incomplete" in done.stderr
    assert texts(cloud) == ALL
    (bot.data / "picture.png").unlink()
    assert bot("migrate", "--to", cloud.url, "--yes").exit_code == 0


def test_without_a_place_it_says_what_to_set(bot):
    """
    Half of one is none either.
    """
    bot.fill()
    bot.environment["ENTRABOT_BLOB_ENDPOINT"] = "https://account.blob.example"

    done = bot("migrate", "--yes")

    assert done.exit_code == 1
    assert "ENTRABOT_BLOB_CONTAINER" in done.stderr


@pytest.mark.parametrize("by", ["option", "environment", "file"])
def test_memory_that_is_kept_local_is_not_uploaded(bot, cloud, by):
    """
    However that was said.
    """
    bot.fill()
    if by == "environment":
        bot.environment["ENTRABOT_KEEP_MEMORY_LOCAL"] = "yes"
    if by == "file":
        write_env(bot.env_file, {"ENTRABOT_KEEP_MEMORY_LOCAL": "true"})

    done = bot("migrate", "--to", cloud.url, "--yes", *(["--keep-memory-local"] if by == "option" else []))

    assert (done.exit_code, texts(cloud)) == (0, {})


def test_it_moves_to_the_container_of_the_settings(bot, blob_server):
    """
    With EntraBot's token, and never replacing a blob.
    """
    bot.fill()
    bot.environment |= {
        "ENTRABOT_BLOB_ENDPOINT": f"{blob_server.endpoint}/account",
        "ENTRABOT_BLOB_CONTAINER": CONTAINER,
        "ENTRABOT_STORAGE_TOKEN": TOKEN,
    }

    done = bot("migrate", "--yes")

    assert done.exit_code == 0, done.stderr
    assert {key: text for key, text in blob_server.texts().items() if key != "manifest.json"} == ALL
    written = [asked for asked in blob_server.asked if asked.method == "PUT"]
    assert all({"if-none-match", "if-match"} & set(asked.headers) for asked in written)
    assert TOKEN not in done.output


def test_a_token_that_is_not_taken_is_said_and_nothing_leaks(bot, blob_server):
    """
    The exit code tells a script.
    """
    bot.fill()
    bot.environment |= {
        "ENTRABOT_BLOB_ENDPOINT": f"{blob_server.endpoint}/account",
        "ENTRABOT_BLOB_CONTAINER": CONTAINER,
        "ENTRABOT_STORAGE_TOKEN": "another-secret",
    }

    done = bot("migrate", "--yes")

    assert done.exit_code == 1
    assert "another-secret" not in done.output
    assert blob_server.blobs == {}


@pytest.mark.parametrize("at", [2, 6])
def test_killed_in_the_middle_it_goes_on(bot, blob_server, at):
    """
    A process that is killed as its n-th write arrives (the last is the manifest) leaves nothing half; the next one
    completes it, and the files here are as they were.
    """
    before = bot.fill().digest()
    bot.environment |= {
        "ENTRABOT_BLOB_ENDPOINT": f"{blob_server.endpoint}/account",
        "ENTRABOT_BLOB_CONTAINER": CONTAINER,
        "ENTRABOT_STORAGE_TOKEN": TOKEN,
        "PATH": os.environ["PATH"],
        "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
    }
    writes = []

    def kill(asked):
        if asked.method == "PUT":
            writes.append(asked.path)
            if len(writes) == at + 1:
                process.send_signal(signal.SIGKILL)
                process.wait()

    blob_server.before = kill
    process = subprocess.Popen(
        [sys.executable, "-m", "memplane", "entrabot", "migrate", "--yes"],
        env=bot.environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    process.wait()
    blob_server.before = lambda asked: None

    done = bot("migrate", "--yes", "--json")

    assert process.returncode == -signal.SIGKILL
    assert (done.exit_code, json.loads(done.stdout)["verified"]) == (0, len(ALL))
    assert {key: text for key, text in blob_server.texts().items() if key != "manifest.json"} == ALL
    assert set(json.loads(blob_server.texts()["manifest.json"])["entries"]) == set(ALL)
    assert bot.digest() == before


class Failing(LocalObjects):
    """A place that goes away after so many requests, or damages what is written to it."""

    def __init__(self, root, *, requests=10**6, damage=""):
        super().__init__(root)
        self.requests, self.damage = requests, damage

    def _spend(self):
        self.requests -= 1
        if self.requests < 0:
            raise RemoteUnavailable("it went away")

    def get(self, key, *, unless=None):
        self._spend()
        return super().get(key, unless=unless)

    def put(self, key, data, *, expect=None):
        self._spend()
        return super().put(key, data[:-1] if key == self.damage else data, expect=expect)


def test_what_was_damaged_on_the_way_is_found(bot, cloud):
    """
    The manifest has what was sent, so what came to be there is compared with that.
    """
    bot.fill()
    sources = [moving.MoveSource(root=bot.data, prefix="", name="agent data")]

    moved = moving.move(sources, Failing(cloud._root, damage="watched_chats"))

    assert [key for key, _ in moved.errors] == ["watched_chats"]
    assert moved.verified == len(DATA) - 1


@pytest.mark.parametrize("requests", range(1, 16, 2))
def test_a_place_that_goes_away_leaves_it_incomplete_and_a_second_run_completes_it(bot, cloud, requests):
    """
    At whatever request that is.
    """
    bot.fill()
    sources = [moving.MoveSource(root=bot.data, prefix="", name="agent data")]

    first = moving.move(sources, Failing(cloud._root, requests=requests))
    second = moving.move(sources, cloud)

    assert first.errors or first.verified == len(DATA)
    assert (second.errors, second.verified, texts(cloud)) == ([], len(DATA), DATA)


# The way back


def test_the_way_back_is_one_setting(bot, blob_server):
    """
    After `ENTRABOT_KEEP_MEMORY_LOCAL=true` the files here are the memory again, as they were before the move, and the
    cloud is not asked any more.
    """
    bot.fill()
    settings = {
        "ENTRABOT_BLOB_ENDPOINT": f"{blob_server.endpoint}/account",
        "ENTRABOT_BLOB_CONTAINER": CONTAINER,
    }
    write_env(bot.env_file, settings)
    bot.environment["ENTRABOT_STORAGE_TOKEN"] = TOKEN
    bot("migrate", "--yes")
    bot("promises", "add", "made in the cloud", "--chat", "c")

    done = bot("provision", "--keep-memory-local")
    asked = len(blob_server.asked)

    assert done.exit_code == 0
    assert read_env(bot.env_file) == settings | {"ENTRABOT_KEEP_MEMORY_LOCAL": "true"}
    backend = backend_for(config_from({**read_env(bot.env_file), **bot.environment}))
    assert isinstance(backend, LocalBackend)
    assert {key: backend.read_text(key) for key in backend.list()} == DATA
    assert json.loads(bot("promises", "list", "--json").stdout) == {"promises": []}
    bot("promises", "add", "made here", "--chat", "c")
    assert "made here" in (bot.data / "promises.jsonl").read_text()
    assert len(blob_server.asked) == asked


# Provisioning


@pytest.fixture
def az(tmp_path, monkeypatch):
    return fake_az(tmp_path / "az", monkeypatch)


WHOSE = ["--tenant-id", "tid", "--agent-user-object-id", "oid"]


def test_provisioning_writes_the_settings(bot, az):
    """
    Beside what is in them.
    """
    az.answers(MISSING)
    bot.env_file.write_text("# mine\nENTRABOT_TENANT_ID=tid\nOTHER=1\nENTRABOT_KEEP_MEMORY_LOCAL=true\n")

    done = bot("provision", "--agent-user-object-id", "OID")

    endpoint = f"https://entclaw{hashlib.sha256(b'tid').hexdigest()[:16]}.blob.core.windows.net"
    assert done.exit_code == 0, done.stderr
    assert done.stdout.splitlines() == [f"BLOB_ENDPOINT={endpoint}", "BLOB_CONTAINER=agent-oid"]
    assert "~$0.05–0.50/mo" in done.stderr
    assert bot.env_file.read_text().splitlines() == [
        "# mine",
        "ENTRABOT_TENANT_ID=tid",
        "OTHER=1",
        "ENTRABOT_KEEP_MEMORY_LOCAL=false",
        f"ENTRABOT_BLOB_ENDPOINT={endpoint}",
        "ENTRABOT_BLOB_CONTAINER=agent-oid",
    ]


def test_where_provisioning_fails_memory_stays_local(bot, az):
    """
    A warning says why, and the settings say so from then on.
    """
    az.answers([("group show", 3, "", "no"), ("group create", 1, "", "auth blocked")])

    done = bot("provision", *WHOSE)

    assert done.exit_code == 1
    assert "az group create failed: auth blocked" in done.stderr
    assert read_env(bot.env_file) == {"ENTRABOT_KEEP_MEMORY_LOCAL": "true"}


def test_keeping_memory_local_asks_nothing_of_azure(bot, az):
    """
    It is a mode of its own.
    """
    done = bot("provision", *WHOSE, "--keep-memory-local")

    assert (done.exit_code, az.asked()) == (0, [])
    assert read_env(bot.env_file) == {"ENTRABOT_KEEP_MEMORY_LOCAL": "true"}


@pytest.mark.parametrize(
    "more", [["--with-container", "Bad_"], ["--with-storage-account", "a", "--create-new-storage"]]
)
def test_names_azure_does_not_take_are_refused(bot, az, more):
    """
    And the settings stay as they are: it is the request that is off, not Azure.
    """
    done = bot("provision", *WHOSE, *more)

    assert (done.exit_code, az.asked(), bot.env_file.exists()) == (1, [], False)


def test_a_setting_is_one_line(tmp_path):
    """
    A value cannot bring another setting with it.
    """
    with pytest.raises(InvalidRequest):
        write_env(tmp_path / ".env", {"ENTRABOT_BLOB_CONTAINER": "x\nENTRABOT_TENANT_ID=y"})


def test_settings_are_readable_by_their_owner_only(tmp_path):
    """
    Others' secrets stand in them; a file that is there keeps its mode.
    """
    path = tmp_path / ".env"

    assert write_env(path, {"ENTRABOT_X": "1"}) is True
    assert write_env(path, {"ENTRABOT_X": "1"}) is False
    assert path.stat().st_mode & 0o777 == 0o600
    assert [found.name for found in tmp_path.iterdir()] == [".env"]


# What it keeps


def test_a_day_is_summarized(bot, cloud):
    """
    Where memory is: on this machine, or elsewhere.
    """
    said = {
        "id": "1",
        "ts": "2026-04-16T10:00:00+00:00",
        "channel": "email",
        "direction": "inbound",
        "sender": "d@example.org",
        "summary": "a question",
    }
    backend = LocalBackend(bot.data)
    backend.write_text("interactions/2026-04-16.jsonl", json.dumps(said) + "\n")
    cloud.put("interactions/2026-04-16.jsonl", b"")

    here = bot("summary", "--day", "2026-04-16", "--json")
    there = bot("summary", "--day", "2026-04-16", "--to", cloud.url)

    assert json.loads(here.stdout) == {
        "day": "2026-04-16",
        "counts": {"needs_you": 1, "handled": 0, "heads_up": 0},
        "archive": "summaries/2026-04-16.html",
        "sent_to": [],
    }
    assert "a question" in backend.read_text("summaries/2026-04-16.html")
    assert there.stdout.startswith("2026-04-16: 0 need you")
    assert cloud.get("summaries/2026-04-16.json") is not None


def test_a_day_that_is_none_is_refused(bot):
    """
    With what a day looks like.
    """
    done = bot("summary", "--day", "yesterday")

    assert (done.exit_code, "YYYY-MM-DD" in done.stderr) == (1, True)


@pytest.mark.parametrize("where", ["here", "there"])
def test_promises_are_made_listed_and_settled(bot, cloud, where):
    """
    In the same words everywhere.
    """
    place = [] if where == "here" else ["--to", cloud.url]

    made = json.loads(bot("promises", "add", "Send the plan", "--chat", "c1", *place, "--json").stdout)
    listed = json.loads(bot("promises", "list", *place, "--json").stdout)["promises"]
    settled = json.loads(bot("promises", "resolve", made["id"], "sent", *place, "--json").stdout)
    left = bot("promises", "list", *place)
    every = bot("promises", "list", "--all", *place)

    assert listed == [made]
    assert (settled["status"], settled["resolution"]) == ("resolved", "sent")
    assert left.stdout == ""
    assert "Send the plan" in every.stdout
    assert bot("promises", "resolve", "nobody", "x", *place).exit_code == 1


# Claude Code's memory


def test_commands_keep_the_manifest(bot, cloud):
    """
    A summary, a promise and a pushed file are listed when the command ends, and the cache is beside the data.
    """
    bot.fill()
    bot.environment["ENTRABOT_PERSONA_SYNC"] = "on"
    bot("summary", "--day", "2026-04-17", "--to", cloud.url)
    bot("promises", "add", "answer", "--chat", "c", "--to", cloud.url)
    bot("persona", "push", "--to", cloud.url)

    assert set(manifest.read(cloud)[0].entries) == set(texts(cloud))
    assert {"summaries/2026-04-17.html", "promises.jsonl", "claude_memory/MEMORY.md"} <= set(texts(cloud))
    assert (bot.home / ".entrabot" / "cache" / "blob").is_dir()


def test_what_cannot_be_sent_waits_and_is_said(bot, cloud, monkeypatch):
    """
    The next command sends it.
    """
    bot.fill()
    bot.environment["ENTRABOT_PERSONA_SYNC"] = "on"
    refuse = Failing(cloud._root, requests=0)
    monkeypatch.setattr("memplane.adapters.entrabot.commands.open_store", lambda *_, **__: refuse)
    done = bot("persona", "push-one", str(bot.memory / "MEMORY.md"), "--to", cloud.url)
    monkeypatch.undo()
    monkeypatch.chdir(bot.project)
    assert (done.exit_code, texts(cloud)) == (0, {})
    assert "will be sent later" in done.stderr

    bot("persona", "pull", "--to", cloud.url)

    assert texts(cloud) == {"claude_memory/MEMORY.md": PERSONA["MEMORY.md"]}


def test_claude_codes_memory_goes_up_and_comes_down(bot, cloud):
    """
    When it is switched on.
    """
    bot.fill()
    bot.environment["ENTRABOT_PERSONA_SYNC"] = "on"

    pushed = bot("persona", "push", "--to", cloud.url)
    (bot.memory / "MEMORY.md").write_text("newer")
    one = bot("persona", "push-one", str(bot.memory / "MEMORY.md"), "--to", cloud.url)
    cloud.put("claude_memory/user_role.md", b"from elsewhere")
    pulled = bot("persona", "pull", "--to", cloud.url)

    assert [done.exit_code for done in (pushed, one, pulled)] == [0, 0, 0]
    assert "[persona-sync] push: 2 copied, 0 skipped" in pushed.stderr
    assert cloud.get("claude_memory/MEMORY.md").data == b"newer"
    assert (bot.memory / "user_role.md").read_text() == "from elsewhere"


def test_claude_codes_memory_stays_unless_switched_on(bot, cloud):
    """
    It says how to, and ends well.
    """
    bot.fill()

    done = bot("persona", "push", "--to", cloud.url)

    assert (done.exit_code, texts(cloud)) == (0, {})
    assert done.stderr == "[persona-sync] off: set ENTRABOT_PERSONA_SYNC=on to copy\n"


def test_a_place_that_is_none_does_not_stop_claude_code(bot):
    """
    The reason is on stderr, the exit code is 0.
    """
    bot.environment["ENTRABOT_PERSONA_SYNC"] = "on"

    done = bot("persona", "pull", "--to", "ftp://nowhere")

    assert (done.exit_code, "[persona-sync] pull: " in done.stderr) == (0, True)


# The hook


def payload(path):
    return json.dumps({"tool_name": "Write", "tool_input": {"file_path": str(path)}})


def test_the_hook_answers_claude_code(bot):
    """
    Exit code 2 blocks, 0 lets it go on; the rule is the one of EntraBot's own hook.
    """
    blocked = bot("hook", stdin=payload(bot.memory / "x.md"))
    bot.environment["ENTRABOT_KEEP_MEMORY_LOCAL"] = "true"
    allowed = bot("hook", stdin=payload(bot.memory / "x.md"))

    assert (blocked.exit_code, json.loads(blocked.stdout)["decision"]) == (2, "block")
    assert (allowed.exit_code, allowed.output) == (0, "")
    assert bot("hook", stdin="not json").exit_code == 0


def test_the_hook_is_installed_once_beside_what_is_there(bot):
    """
    Other hooks and settings stay, a copy is kept, and what is written is what Claude Code runs.
    """
    theirs = {"matcher": "Bash", "hooks": [{"type": "command", "command": "mine.sh"}]}
    settings = bot.project / ".claude" / "settings.json"
    settings.parent.mkdir()
    before = {"model": "opus", "hooks": {"PreToolUse": [theirs], "Stop": []}}
    settings.write_text(json.dumps(before))

    first = bot("hook", "install", "--yes")
    second = bot("hook", "install", "--yes", "--json")

    written = json.loads(settings.read_text())
    assert first.exit_code == 0, first.stderr
    assert json.loads(second.stdout)["changed"] is False
    assert written["model"] == "opus"
    assert written["hooks"]["Stop"] == []
    assert written["hooks"]["PreToolUse"][0] == theirs
    (ours,) = written["hooks"]["PreToolUse"][1:]
    assert ours["matcher"] == "Write|Edit|MultiEdit|NotebookEdit"
    done = subprocess.run(
        ours["hooks"][0]["command"],
        shell=True,
        input=payload(bot.memory / "x.md"),
        capture_output=True,
        text=True,
        env={"HOME": str(bot.home), "PATH": os.environ["PATH"]},
        check=False,
    )
    assert done.returncode == 2
    assert json.loads(Path(f"{settings}.memplane-backup").read_text()) == before


def test_a_hook_of_another_python_is_replaced(bot):
    """
    Upgrading leaves one hook, and hooks of others in its group.
    """
    settings = bot.home / ".claude" / "settings.json"
    settings.parent.mkdir(parents=True)
    old = {"type": "command", "command": "/old/python -I /old/block_local_memory_write.py"}
    other = {"type": "command", "command": "mine.sh"}
    settings.write_text(
        json.dumps(
            {
                "hooks": {
                    "PreToolUse": [
                        {"matcher": "Write", "hooks": [old, other]},
                        {"matcher": "Edit", "hooks": [old]},
                    ]
                }
            }
        )
    )

    bot("hook", "install", "--user", "--yes")

    groups = json.loads(settings.read_text())["hooks"]["PreToolUse"]
    assert groups[0] == {"matcher": "Write", "hooks": [other]}
    assert len(groups) == 2
    assert sys.executable in groups[1]["hooks"][0]["command"]


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"hooks": []}', '{"hooks": {"PreToolUse": {}}}', '{"a": 1, "a": 2}']
)
def test_settings_that_are_not_understood_are_left_alone(bot, text):
    """
    It says so; nothing is lost.
    """
    settings = bot.project / "settings.json"
    settings.write_text(text)

    done = bot("hook", "install", "--settings", str(settings), "--yes")

    assert done.exit_code == 1
    assert settings.read_text() == text


def test_without_a_person_nothing_is_written_unasked(bot):
    """
    What would be written is shown.
    """
    done = bot("hook", "install")

    assert (done.exit_code, (bot.project / ".claude").exists()) == (1, False)
    assert "block_local_memory_write.py" in done.stderr
