"""Handlers for the Anthropic SDK's tool runner. They need the package `anthropic`, which Memplane itself does not.

>>> runner = client.beta.messages.tool_runner(model=…, messages=…, tools=[MemplaneMemoryTool(plane.space("alice"))])
"""

from typing import Any

import anyio.to_thread
from anthropic.lib.tools import (
    BetaAbstractMemoryTool,
    BetaAsyncAbstractMemoryTool,
    BetaFunctionToolResultType,
    ToolError,
)
from anthropic.types.beta import (
    BetaCacheControlEphemeralParam,
    BetaMemoryTool20250818CreateCommand,
    BetaMemoryTool20250818DeleteCommand,
    BetaMemoryTool20250818InsertCommand,
    BetaMemoryTool20250818RenameCommand,
    BetaMemoryTool20250818StrReplaceCommand,
    BetaMemoryTool20250818ViewCommand,
)

from memplane.adapters.anthropic.commands import ToolCommandError, read_command, run
from memplane.memory.paths import ROOT
from memplane.space import Space


class MemplaneMemoryTool(BetaAbstractMemoryTool):
    """Claude's `/memories` directory, stored in a space. Errors are raised as `ToolError`, which the runner returns
    to the model."""

    def __init__(self, space: Space, *, cache_control: BetaCacheControlEphemeralParam | None = None) -> None:
        super().__init__(cache_control=cache_control)
        self._space = space

    def call(self, input: object) -> BetaFunctionToolResultType:  # noqa: A002 - the base class's parameter name
        """The model's input, which may not be a valid command."""
        return _answer(self._space, input)

    def view(self, command: BetaMemoryTool20250818ViewCommand) -> BetaFunctionToolResultType:
        return _answer(self._space, command.to_dict())

    def create(self, command: BetaMemoryTool20250818CreateCommand) -> BetaFunctionToolResultType:
        return _answer(self._space, command.to_dict())

    def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> BetaFunctionToolResultType:
        return _answer(self._space, command.to_dict())

    def insert(self, command: BetaMemoryTool20250818InsertCommand) -> BetaFunctionToolResultType:
        return _answer(self._space, command.to_dict())

    def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> BetaFunctionToolResultType:
        return _answer(self._space, command.to_dict())

    def rename(self, command: BetaMemoryTool20250818RenameCommand) -> BetaFunctionToolResultType:
        return _answer(self._space, command.to_dict())

    def clear_all_memory(self) -> BetaFunctionToolResultType:
        return _cleared(self._space)


class MemplaneAsyncMemoryTool(BetaAsyncAbstractMemoryTool):
    """The same for the asynchronous client; the engine runs in a thread."""

    def __init__(self, space: Space, *, cache_control: BetaCacheControlEphemeralParam | None = None) -> None:
        super().__init__(cache_control=cache_control)
        self._space = space

    async def call(self, input: object) -> BetaFunctionToolResultType:  # noqa: A002 - the base class's parameter name
        """The model's input, which may not be a valid command."""
        return await anyio.to_thread.run_sync(_answer, self._space, input)

    async def view(self, command: BetaMemoryTool20250818ViewCommand) -> BetaFunctionToolResultType:
        return await self.call(command.to_dict())

    async def create(self, command: BetaMemoryTool20250818CreateCommand) -> BetaFunctionToolResultType:
        return await self.call(command.to_dict())

    async def str_replace(
        self, command: BetaMemoryTool20250818StrReplaceCommand
    ) -> BetaFunctionToolResultType:
        return await self.call(command.to_dict())

    async def insert(self, command: BetaMemoryTool20250818InsertCommand) -> BetaFunctionToolResultType:
        return await self.call(command.to_dict())

    async def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> BetaFunctionToolResultType:
        return await self.call(command.to_dict())

    async def rename(self, command: BetaMemoryTool20250818RenameCommand) -> BetaFunctionToolResultType:
        return await self.call(command.to_dict())

    async def clear_all_memory(self) -> BetaFunctionToolResultType:
        return await anyio.to_thread.run_sync(_cleared, self._space)


def _answer(space: Space, given: Any) -> str:
    try:
        return run(space, read_command(given))
    except ToolCommandError as exc:
        raise ToolError(str(exc)) from exc


def _cleared(space: Space) -> str:
    """For tests and interactive use; the model has no such command."""
    for folder in dict.fromkeys(entry.path.split("/")[2] for entry in space.files.list(ROOT)):
        space.files.delete(f"{ROOT}/{folder}")
    return "All memory cleared"
