"""Claude Code's memory of a project, to and from a place for memory; and the script that does it."""

from pathlib import Path

import pytest
from entrabot.storage.backend import LocalBackend
from entrabot.storage.persona import PersonaBackend, claude_code_memory_dir

from memplane.adapters.entrabot.scripts import claude_memory_sync


@pytest.fixture
def cloud(tmp_path):
    return LocalBackend(tmp_path / "cloud")


@pytest.fixture
def memory(tmp_path):
    folder = tmp_path / "memory"
    folder.mkdir()
    return folder


@pytest.fixture
def persona(cloud, memory):
    return PersonaBackend(cloud, local_root=memory)


# Where Claude Code keeps it


def test_separators_and_spaces_become_dashes(tmp_path):
    """
    Of a path of either kind.
    """
    found = claude_code_memory_dir(Path("/path/to/my project"), home=tmp_path)
    windows = claude_code_memory_dir(r"C:\code\it", home=tmp_path)

    assert found == tmp_path / ".claude" / "projects" / "-path-to-my-project" / "memory"
    assert windows.parent.name == "C:-code-it"


def test_a_plain_path_is_a_plain_name(tmp_path):
    """
    Its first separator is a dash too.
    """
    found = claude_code_memory_dir(Path("/srv/alice/code"), home=tmp_path)

    assert found == tmp_path / ".claude" / "projects" / "-srv-alice-code" / "memory"


def test_the_directory_need_not_be_there(tmp_path):
    """
    It is named, not made.
    """
    assert not claude_code_memory_dir(Path("/nope"), home=tmp_path).exists()


# One file


def test_one_file_goes_below_claude_memory(persona, cloud, memory):
    """
    Over what is there, since it is newer.
    """
    (memory / "user_alice_role.md").write_text("# Alice\nArchitect")
    cloud.write_text("claude_memory/user_alice_role.md", "older")

    persona.push_one(memory / "user_alice_role.md")

    assert cloud.read_text("claude_memory/user_alice_role.md") == "# Alice\nArchitect"


def test_a_file_of_another_directory_is_refused(persona, cloud, memory, tmp_path):
    """
    By whatever way it is named: a misconfigured hook uploads nothing else.
    """
    (tmp_path / "other.md").write_text("private")
    (memory / "link.md").symlink_to(tmp_path / "other.md")

    for path in (tmp_path / "other.md", memory / ".." / "other.md", memory / "link.md"):
        with pytest.raises(ValueError, match="outside"):
            persona.push_one(path)

    assert cloud.list() == []


def test_a_file_that_is_gone_is_nothing_to_do(persona, cloud, memory):
    """
    The hook may come after a rename.
    """
    persona.push_one(memory / "was_deleted.md")

    assert cloud.list("claude_memory/") == []


# All of them, up


def test_all_files_go_up(persona, cloud, memory):
    """
    Each under its own name.
    """
    for name in ("MEMORY.md", "user_alice_role.md", "feedback_tone.md"):
        (memory / name).write_text(name)

    report = persona.push_all()

    assert report.copied == 3
    assert {key: cloud.read_text(key) for key in cloud.list()} == {
        f"claude_memory/{name}": name for name in ("MEMORY.md", "user_alice_role.md", "feedback_tone.md")
    }


def test_going_up_all_at_once_overwrites_nothing(persona, cloud, memory):
    """
    The cloud is right when both have it.
    """
    (memory / "MEMORY.md").write_text("local")
    cloud.write_text("claude_memory/MEMORY.md", "cloud")

    report = persona.push_all()

    assert (report.copied, report.skipped) == (0, 1)
    assert cloud.read_text("claude_memory/MEMORY.md") == "cloud"


def test_no_directory_is_nothing_to_push(cloud, tmp_path):
    """
    And no error.
    """
    report = PersonaBackend(cloud, local_root=tmp_path / "missing").push_all()

    assert (report.copied, report.skipped, report.errors) == (0, 0, [])


# All of them, down


def test_everything_below_claude_memory_comes_down(persona, cloud, memory):
    """
    And nothing else.
    """
    cloud.write_text("claude_memory/MEMORY.md", "index")
    cloud.write_text("claude_memory/deep/user_role.md", "role")
    cloud.write_text("claude_memory_not/x.md", "no")
    cloud.write_text("interactions/2026-04-17.jsonl", "no")

    report = persona.pull_all()

    assert report.pulled == 2
    assert {p.relative_to(memory).as_posix(): p.read_text() for p in memory.rglob("*.*")} == {
        "MEMORY.md": "index",
        "deep/user_role.md": "role",
    }


def test_what_comes_down_overwrites_what_is_here(persona, cloud, memory):
    """
    The cloud is right when both have it.
    """
    cloud.write_text("claude_memory/MEMORY.md", "cloud")
    (memory / "MEMORY.md").write_text("stale")

    persona.pull_all()

    assert (memory / "MEMORY.md").read_text() == "cloud"


def test_an_empty_cloud_gives_nothing(cloud, tmp_path):
    """
    And makes no directory.
    """
    report = PersonaBackend(cloud, local_root=tmp_path / "none").pull_all()

    assert report.pulled == 0
    assert not (tmp_path / "none").exists()


class Dict:
    """A place for text in memory, which takes any key."""

    def __init__(self, **texts):
        self.texts = texts

    def read_text(self, key):
        return self.texts.get(key)

    def write_text(self, key, content):
        self.texts[key] = content

    def append_text(self, key, content):
        self.texts[key] = self.texts.get(key, "") + content

    def exists(self, key):
        return key in self.texts

    def list(self, prefix=""):
        return [key for key in self.texts if key.startswith(prefix)]


@pytest.mark.parametrize("name", ["../evil.md", "a/../../evil.md", "/etc/evil", "", "a//b"])
def test_a_name_in_the_cloud_that_leads_elsewhere_is_refused(memory, tmp_path, name):
    """
    It is reported, and the others come down.
    """
    cloud = Dict(**{f"claude_memory/{name}": "evil", "claude_memory/good.md": "good"})

    report = PersonaBackend(cloud, local_root=memory).pull_all()

    assert [key for key, _ in report.errors] == [f"claude_memory/{name}"]
    assert [path.name for path in tmp_path.rglob("*.md")] == ["good.md"]


def test_a_file_that_is_no_text_does_not_keep_the_others(persona, cloud, memory):
    """
    It is reported.
    """
    (memory / "a.png").write_bytes(b"\xff")
    (memory / "b.md").write_text("b")

    report = persona.push_all()

    assert (report.copied, [key for key, _ in report.errors]) == (1, ["claude_memory/a.png"])


# The script


@pytest.fixture
def script(monkeypatch, memory, entrabot_settings):
    """The script with its two seams replaced, as EntraBot's tests do it; switched on."""
    entrabot_settings(persona_sync="on")
    script = claude_memory_sync
    cloud = Dict()
    monkeypatch.setattr(script, "_resolve_backend", lambda: cloud)
    monkeypatch.setattr(script, "_resolve_memory_dir", lambda: memory)
    script.cloud = cloud
    return script


def test_script_pushes_one_file(script, memory):
    """
    And ends well.
    """
    (memory / "user_role.md").write_text("Architect")

    assert script.main(["push-one", str(memory / "user_role.md")]) == 0
    assert script.cloud.texts == {"claude_memory/user_role.md": "Architect"}


def test_script_pushes_no_file_of_another_directory(script, tmp_path, capsys):
    """
    It says so and ends well, because Claude Code waits for it.
    """
    (tmp_path / "other.md").write_text("private")

    assert script.main(["push-one", str(tmp_path / "other.md")]) == 0
    assert script.cloud.texts == {}
    assert capsys.readouterr().err.startswith("[persona-sync] ")


def test_script_pushes_all_files(script, memory, capsys):
    """
    And says how many.
    """
    (memory / "MEMORY.md").write_text("index")
    (memory / "user_role.md").write_text("role")

    assert script.main(["push"]) == 0
    assert script.cloud.texts == {"claude_memory/MEMORY.md": "index", "claude_memory/user_role.md": "role"}
    assert "[persona-sync] push: 2 copied, 0 skipped" in capsys.readouterr().err


def test_script_pulls_all_files(script, memory, capsys):
    """
    Of Claude Code's memory alone.
    """
    script.cloud.texts |= {"claude_memory/MEMORY.md": "index", "interactions/2026-04-17.jsonl": "no"}

    assert script.main(["pull"]) == 0
    assert [path.name for path in memory.iterdir()] == ["MEMORY.md"]
    assert "[persona-sync] pull: 1 files" in capsys.readouterr().err


def test_script_pulls_nothing_unless_switched_on(script, monkeypatch, capsys):
    """
    The cloud is not even looked at.
    """
    monkeypatch.delenv("ENTRABOT_PERSONA_SYNC")
    monkeypatch.setattr(script, "_resolve_backend", lambda: pytest.fail("was looked at"))

    assert script.main(["pull"]) == 0
    assert capsys.readouterr().err == ""


def test_script_pushes_nothing_unless_switched_on(script, monkeypatch, memory, capsys):
    """
    Nor does it say anything: it runs after every edit.
    """
    monkeypatch.setenv("ENTRABOT_PERSONA_SYNC", "off")
    monkeypatch.setattr(script, "_resolve_backend", lambda: pytest.fail("was looked at"))
    (memory / "x.md").write_text("x")

    assert script.main(["push-one", str(memory / "x.md")]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("arguments", [["pull"], ["push"], ["push-one", "x.md"]])
def test_script_ends_well_whatever_happens(script, monkeypatch, capsys, arguments):
    """
    A cloud that cannot be reached must not stop Claude Code.
    """

    def unreachable():
        raise OSError("the network is down")

    monkeypatch.setattr(script, "_resolve_backend", unreachable)

    assert script.main(arguments) == 0
    assert "the network is down" in capsys.readouterr().err
