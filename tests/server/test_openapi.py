"""Every call of every door, from its own description: what fits and what does not is answered as described, and
nothing is ever a 500."""

import os
from contextlib import suppress

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from jsonschema import Draft202012Validator
from schemathesis.core.failures import FailureGroup
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from tests.conftest import THOROUGH

from http_server import OWNER

CHECKS = [status_code_conformance, content_type_conformance, response_schema_conformance]
EXAMPLES = int(os.environ.get("MEMPLANE_FUZZ_EXAMPLES", "60" if THOROUGH else "4"))


def description_of(server):
    answer = server.client(None).get("/openapi.json")
    assert answer.status_code == 200
    return answer.json()


def operations_of(server):
    schema = schemathesis.openapi.from_dict(description_of(server))
    schema.config.update(base_url=server.url)
    return [found.ok() for found in schema.get_all_operations()]


def knock(server, operation, mode, credential):
    """Some dozens of calls of one operation."""
    headers = {"authorization": f"Bearer {credential}"} if credential else {}

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def call(case):
        answer = case.call(base_url=server.url, headers=headers, timeout=100)
        # 503 is a promise to answer when something is set or free, such as a log-in without a password.
        assert answer.status_code not in {500, 502}, operation.label
        case.validate_response(answer, checks=CHECKS, headers=headers)

    with suppress(Unsatisfiable):  # where there is nothing to give, nothing wrong can be given either
        call()


def test_the_description_is_valid(server):
    """
    Each operation has a name of its own, an answer, and the refusals that every call may meet.
    """
    description = description_of(server)
    operations = [one for path in description["paths"].values() for one in path.values()]
    names = [operation["operationId"] for operation in operations]

    schemathesis.openapi.from_dict(description).validate()
    assert description["openapi"].startswith("3.1")
    assert len(names) == len(set(names))
    assert all({"400", "413", "500"} <= set(operation["responses"]) for operation in operations)


def test_every_operation_shows_what_it_takes_and_answers(server):
    """
    A summary, and an example of the body and of the answer that fits its schema; names of types are no names of modules.
    """
    description = description_of(server)
    components = description["components"]
    contents = {
        f"{method} {path}": content
        for path, operations in description["paths"].items()
        for method, operation in operations.items()
        for part in (operation.get("requestBody", {}), operation["responses"].get("200", {}))
        for media, content in part.get("content", {}).items()
        if media == "application/json" and "$ref" in content["schema"]
    }
    summaries = [one["summary"] for path in description["paths"].values() for one in path.values()]

    assert len(contents) > 40
    assert [name for name, content in contents.items() if "example" not in content] == []
    for name, content in contents.items():
        schema = {**content["schema"], "components": components}
        assert list(Draft202012Validator(schema).iter_errors(content["example"])) == [], name
    assert all(summaries)
    assert [name for name in components["schemas"] if "memplane" in name.lower()] == []


@pytest.mark.parametrize("mode", schemathesis.GenerationMode)
def test_every_call_answers_as_described(server, mode):
    """
    Good and bad input, made up from the description: no 500, no undescribed status, no other shape.
    """
    broken = []
    for operation in operations_of(server):
        try:
            knock(server, operation, mode, OWNER)
        except FailureGroup as failures:
            broken += [f"{operation.label}: {failure}" for failure in failures.exceptions]

    assert (broken, server.faults) == ([], [])


def test_every_call_that_needs_a_key_says_so(server):
    """
    Without one every protected operation is a 401 that says how; a wrong one opens none (cllama knows that as 403).
    """
    for operation in operations_of(server):
        if not operation.definition.raw["security"]:
            continue
        path = operation.path.replace("{", "").replace("}", "")
        missing = server.client(None).request(operation.method.upper(), path)
        wrong = server.client("wrong").request(operation.method.upper(), path)
        assert missing.status_code == 401, operation.label
        assert missing.headers["www-authenticate"].startswith("Bearer")
        assert wrong.status_code in {401, 403}, operation.label


@pytest.mark.parametrize("path", ["/openapi.json", "/docs"])
def test_the_description_asks_nobody_else(server, path):
    """
    Nothing in it is loaded from another machine.
    """
    answer = server.client(None).get(path)

    assert answer.status_code == 200
    assert "http://" not in answer.text
    assert "https://" not in answer.text
