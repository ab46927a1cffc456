"""The memory tool over HTTP, for programs in other languages or on other machines."""

import msgspec
from starlette.responses import Response

from memplane.adapters.anthropic.commands import Command, ToolCommandError, ViewCommand, run
from memplane.auth.principal import Right
from memplane.server.endpoint import Adapter, Endpoint, HttpCall, Query
from memplane.server.responses import json_response

ADAPTER = "tool"
PATH = "/api/memory-tool"


class ToolResult(msgspec.Struct, frozen=True):
    """The content of the `tool_result` block, with the same field names."""

    content: str
    is_error: bool = False


def adapter() -> Adapter:
    return Adapter(
        name=ADAPTER,
        title="Anthropic memory tool",
        routes=(
            Endpoint(
                method="POST",
                path=PATH,
                adapter=ADAPTER,
                summary="Run a command of Anthropic's memory tool (memory_20250818)",
                example={
                    "command": "create",
                    "path": "/memories/notes.md",
                    "file_text": "Prefers TypeScript\n",
                },
                handle=_handle,
                right=Right.READ,
                body=Command,
                answer=ToolResult,
                query=(
                    Query(name="space", description="The space; by default that of the credential."),
                    Query(name="session", default="", description="The session whose limit counts deletes."),
                ),
            ),
        ),
    )


def _handle(call: HttpCall) -> Response:
    """A failed command is a result for the model, not an HTTP error."""
    right = Right.READ if isinstance(call.body, ViewCommand) else Right.WRITE
    owner = call.query["space"] or call.principal.subject
    space = call.space(owner, right, session=call.query["session"])
    call.check_space_exists(owner)
    try:
        return json_response(ToolResult(run(space, call.body)))
    except ToolCommandError as exc:
        return json_response(ToolResult(str(exc), is_error=True))
