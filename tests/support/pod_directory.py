"""The directory of a pod, and the operator's commands run on it."""

import json

from memplane.adapters.clawdapus.session_history import HistoryRecorder

SECRET = "sk-" + "abcdef123456"
DESCRIPTOR = {
    "version": 2,
    "memory": {name: {"path": f"/{name}"} for name in ("recall", "retain", "forget")},
}
POD = """
x-claw:
  pod: desk
  memory-defaults:
    service: mem-svc
    timeout-ms: 2000
services:
  analyst:
    image: analyst
    environment: {TZ: America/New_York}
    x-claw: {agent: ./AGENTS.md, cllama: passthrough, type: openclaw}
  researcher:
    x-claw:
      cllama: passthrough
      memory: {service: mem-svc}
  loner:
    x-claw: {cllama: passthrough, memory: null}
  plain:
    image: nginx
  mem-svc:
    build: {context: ./mem}
    expose: ["8080"]
"""


class PodDirectory:
    """A pod on disk; `lines` are the entries its agents begin with."""

    def __init__(self, folder, cli):
        self.path = folder / "pod"
        self.path.mkdir()
        (self.path / "mem").mkdir()
        self.cli = cli
        self.describe(DESCRIPTOR)
        self.write(POD)

    def write(self, text):
        (self.path / "claw-pod.yml").write_text(text)

    def describe(self, document):
        (self.path / "mem" / ".claw-describe.json").write_text(json.dumps(document))

    def run(self, *arguments, **more):
        return self.cli(*arguments, "--file", str(self.path / "claw-pod.yml"), **more)

    def context(self, agent, name):
        return self.path / ".claw-runtime" / "context" / agent / name

    def manifest(self, agent):
        return json.loads(self.context(agent, "memory.json").read_text())

    def record(self, agent, *lines, **options):
        recorder = HistoryRecorder(self.path / ".claw-session-history", **options)
        for line in lines:
            recorder.append(agent, line.line)

    def tombstones(self, agent):
        path = self.path / ".claw-memory-tombstones" / agent / "tombstones.jsonl"
        return path.read_text().splitlines() if path.exists() else []

    def files(self):
        return {
            str(path.relative_to(self.path)): path.read_bytes()
            for path in self.path.rglob("*")
            if path.is_file()
        }
