"""The MCP server, on the SDK's low-level server: argument validation must be exact, and output schemas must not be
derived from annotations. It is stateless, so any process can handle any request."""

import logging
from collections.abc import Callable
from importlib.metadata import version
from typing import Any, Protocol, TypeVar

import anyio.to_thread
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

from memplane.adapters.mcp import facts, memories
from memplane.adapters.mcp.resources import (
    INSTRUCTIONS,
    JSON,
    MEMORY_TEMPLATE,
    PROMPTS,
    RESOURCES,
    read_resource,
    write_prompt,
)
from memplane.adapters.mcp.tool import McpTool, McpToolResult, checked_for
from memplane.auth.principal import Right
from memplane.errors import MemplaneError, NotFound
from memplane.safety.sanitize import encodable
from memplane.space import Space

TOOLS: dict[str, McpTool] = {tool.name: tool for tool in (*memories.TOOLS, *facts.TOOLS)}

_log = logging.getLogger("memplane.mcp")

Context = ServerRequestContext[Any, Any]
T = TypeVar("T")


class McpCaller(Protocol):
    """The caller of a request, as the transport identifies them."""

    def may(self, right: Right) -> bool:
        """Whether the credential has this permission; tools without permission are not offered."""

    def space(self, right: Right) -> Space:
        """The caller's space; raises `Forbidden`."""


def build_server(visitor_of: Callable[[Context], McpCaller]) -> Server[Any]:
    handlers = _Handlers(visitor_of)
    return Server(
        "memplane",
        version=version("memplane"),
        title="Memplane",
        description="Long-term memory for AI agents, with evidence.",
        instructions=INSTRUCTIONS,
        get_tool_input_schema=lambda name: TOOLS[name].arguments if name in TOOLS else None,
        on_list_tools=handlers.list_tools,
        on_call_tool=handlers.call_tool,
        on_list_resources=handlers.list_resources,
        on_list_resource_templates=handlers.list_templates,
        on_read_resource=handlers.read,
        on_list_prompts=handlers.list_prompts,
        on_get_prompt=handlers.get_prompt,
    )


class _Handlers:
    """One method per request type. The engine runs in a thread, and its errors are returned as Memplane's errors."""

    def __init__(self, visitor_of: Callable[[Context], McpCaller]) -> None:
        self._visitor_of = visitor_of

    async def list_tools(self, context: Context, _params: object) -> types.ListToolsResult:
        visitor = await _answered(lambda: self._visitor_of(context))
        return types.ListToolsResult(
            tools=[_declared(tool) for tool in TOOLS.values() if visitor.may(tool.right)]
        )

    async def call_tool(self, context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        tool = TOOLS.get(params.name)
        if tool is None:
            raise MCPError(code=types.INVALID_PARAMS, message=f"Unknown tool: {params.name[:100]!r}")

        def work() -> McpToolResult:
            arguments = checked_for(tool, params.arguments or {})
            return tool.run(self._visitor_of(context).space(tool.right), arguments)

        try:
            answer = await anyio.to_thread.run_sync(work)
        except Exception as exc:  # noqa: BLE001 - a tool's failure is reported to the model
            return types.CallToolResult(content=[_text(error_text(exc))], is_error=True)
        return types.CallToolResult(content=[_text(answer.text)], structured_content=answer.data)

    async def list_resources(self, _context: Context, _params: object) -> types.ListResourcesResult:
        return types.ListResourcesResult(
            resources=[
                types.Resource(
                    uri=resource.uri,
                    name=resource.name,
                    title=resource.title,
                    description=resource.description,
                    mime_type=resource.media,
                )
                for resource in RESOURCES
            ]
        )

    async def list_templates(self, _context: Context, _params: object) -> types.ListResourceTemplatesResult:
        template = types.ResourceTemplate(
            uri_template=MEMORY_TEMPLATE,
            name="memory",
            title="A memory with its evidence",
            description="One memory by id: its state, the memory it replaced, and its evidence.",
            mime_type=JSON,
        )
        return types.ListResourceTemplatesResult(resource_templates=[template])

    async def read(
        self, context: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        uri = str(params.uri)
        media, text = await _answered(lambda: read_resource(self._visitor_of(context).space(Right.READ), uri))
        contents = types.TextResourceContents(uri=uri, mime_type=media, text=encodable(text))
        return types.ReadResourceResult(contents=[contents])

    async def list_prompts(self, _context: Context, _params: object) -> types.ListPromptsResult:
        return types.ListPromptsResult(
            prompts=[
                types.Prompt(
                    name=prompt.name,
                    title=prompt.title,
                    description=prompt.description,
                    arguments=[
                        types.PromptArgument(name=name, description=meaning, required=False)
                        for name, meaning in prompt.arguments.items()
                    ],
                )
                for prompt in PROMPTS
            ]
        )

    async def get_prompt(
        self, context: Context, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult:
        prompt = next((prompt for prompt in PROMPTS if prompt.name == params.name), None)
        if prompt is None:
            raise MCPError(code=types.INVALID_PARAMS, message=f"Unknown prompt: {params.name[:100]!r}")
        given = dict(params.arguments or {})
        text = await _answered(
            lambda: write_prompt(self._visitor_of(context).space(Right.READ), prompt, given)
        )
        message = types.PromptMessage(role="user", content=_text(text))
        return types.GetPromptResult(description=prompt.description, messages=[message])


async def _answered(work: Callable[[], T]) -> T:
    """Raise a protocol error, because requests other than tool calls have no error result."""
    try:
        return await anyio.to_thread.run_sync(work)
    except Exception as exc:
        code = exc.category.rpc_code if isinstance(exc, MemplaneError) else types.INTERNAL_ERROR
        data = {"uri": exc.name} if isinstance(exc, NotFound) and exc.what == "resource" else None
        raise MCPError(code=code, message=error_text(exc), data=data) from exc


def error_text(error: Exception) -> str:
    """The error text for a caller. Details of internal errors go only to the log, because storage messages contain
    file names and bug messages may contain anything."""
    if isinstance(error, MemplaneError) and error.category.is_callers:
        return encodable(str(error))
    _log.error("a request failed", exc_info=error)
    if isinstance(error, MemplaneError):
        again = "try again in a moment" if error.retryable else "see the server's log"
        return f"memory is temporarily unavailable ({error.code}); {again}"
    return "internal error; see the server's log"


def _declared(tool: McpTool) -> types.Tool:
    reads = tool.right is Right.READ
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=dict(tool.arguments),
        output_schema=dict(tool.answer),
        annotations=types.ToolAnnotations(
            title=tool.title,
            read_only_hint=reads,
            destructive_hint=tool.destructive,
            idempotent_hint=tool.idempotent,
            open_world_hint=False,
        ),
    )


def _text(text: str) -> types.TextContent:
    return types.TextContent(type="text", text=encodable(text))
