"""Alice, Bob and an administrator of the facts door, and rows as another engine would have written them."""

from memplane.auth.principal import Right
from memplane.memory.runs import PackRun, PipelineRun, PlanRun, PlanStep, RunFinding

USUAL = (Right.READ, Right.WRITE)


class People:
    """A client for each of them; `alice.post(…)`."""

    def __init__(self, server):
        self.server = server
        self.alice = server.client(
            server.keys.add("alice-token", subject="alice", spaces={"alice"}, rights=USUAL)
        )
        self.bob = server.client(server.keys.add("bob-token", subject="bob", spaces={"bob"}, rights=USUAL))
        self.admin = server.client(server.keys.add("admin-token", subject="root"))
        self.nobody = server.client(server.keys.add("nobody-token", subject="", rights=USUAL))


def store(client, key, value="something", **rest):
    answer = client.post("/api/v1/memory/store", json={"key": key, "value": value, **rest})
    assert answer.status_code == 200, answer.text
    return answer.json()


def record_runs(plane, clock, owner="alice"):
    """Three blog calls (two of them technical), one failure with findings, two pipeline runs."""
    space = plane.space(owner)

    def record(run):
        clock.advance(seconds=1)
        return space.facts.record_run(run)

    for at, persona in ((100, "technical"), (200, "casual"), (300, "technical")):
        record(
            PackRun(
                pack="blog.publish",
                outcome="ok",
                at_unix=at,
                version="v1",
                duration_ms=12,
                learn_inputs={"persona": persona},
            )
        )
    record(
        PackRun(
            pack="hyperframes.lint",
            outcome="handler_failed",
            at_unix=400,
            findings=(RunFinding(code="media_missing_id", severity="error", file="a.html"),),
        )
    )
    record(
        PipelineRun(
            pipeline="builtin.brief",
            run_id="run-1",
            outcome="succeeded",
            at_unix=1_000,
            learn_inputs={"persona": "technical"},
        )
    )
    record(PipelineRun(pipeline="builtin.brief", run_id="run-2", outcome="failed", at_unix=900))


def record_plans(plane, clock, owner="alice"):
    space = plane.space(owner)
    for sha, at, tool in (("aa", 10, "blog.publish"), ("bb", 20, "lint"), ("aa", 30, "blog.publish")):
        clock.advance(seconds=1)
        space.facts.record_run(
            PlanRun(
                intent_sha=sha,
                complexity="simple",
                outcome="ok",
                at_unix=at,
                model="small",
                steps=(PlanStep(order=1, tool=tool, args_sha="ff"),),
            )
        )
