"""A pod in a directory, and a memory service that it may call."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from clawdapus import entry_line, later
from command_line import Inside
from memory_service import ReferenceMemory
from pod_directory import PodDirectory

AGENTS = ("analyst", "researcher")


@pytest.fixture
def pod(tmp_path: Path, cli: Inside) -> PodDirectory:
    """A pod of three agents, two of which subscribe to one memory service."""
    return PodDirectory(tmp_path, cli)


@pytest.fixture
def service(tmp_path: Path) -> Iterator[ReferenceMemory]:
    made = ReferenceMemory(tmp_path / "reference")
    yield made
    made.close()


@pytest.fixture(scope="session")
def running_once(tmp_path_factory: pytest.TempPathFactory) -> PodDirectory:
    folder = tmp_path_factory.mktemp("running")
    made = PodDirectory(folder, Inside(folder))
    assert made.run("up").code == 0
    made.lines = {
        agent: [
            entry_line(f"{agent} asks {it}", f"answer {it}", at=later(it), claw_id=agent) for it in range(3)
        ]
        for agent in AGENTS
    }
    for agent in AGENTS:
        made.record(agent, *made.lines[agent])
    return made


@pytest.fixture
def running(pod: PodDirectory, running_once: PodDirectory) -> PodDirectory:
    """A compiled pod, two of whose agents have a history of three turns each."""
    shutil.copytree(running_once.path, pod.path, dirs_exist_ok=True)
    pod.lines = {agent: list(lines) for agent, lines in running_once.lines.items()}
    return pod
