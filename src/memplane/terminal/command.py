"""How commands are registered: shared options, examples in help, and error handling."""

import inspect
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Concatenate, ParamSpec, cast

import typer
from rich.markup import escape

from memplane.errors import InvalidRequest, MemplaneError
from memplane.terminal.call import CommandContext, Wiring
from memplane.terminal.exits import BROKEN_PIPE, MENDABLE, exit_code, report
from memplane.terminal.options import Data, Json, SpaceName

P = ParamSpec("P")
Command = Callable[Concatenate[CommandContext, P], None]

_SHARED: dict[str, tuple[Any, Any]] = {
    "data": (Data, None),
    "space": (SpaceName, None),
    "json": (Json, False),
}


def command(
    app: typer.Typer, name: str | None = None, *, examples: Sequence[str]
) -> Callable[[Command[P]], Command[P]]:
    """Register a function `(call, …its own Typer parameters…)` as a command.

    `--data`, `--space` and `--json` are added to its options, so that they work before or after its name. A
    command that gives one of them another meaning declares a parameter of that name.
    """

    def register(function: Command[P]) -> Command[P]:
        work = cast("Callable[..., None]", function)
        app.command(name or work.__name__, epilog=epilog(examples))(_invoked(work))
        return function

    return register


def default(app: typer.Typer, *, examples: Sequence[str]) -> Callable[[Command[P]], Command[P]]:
    """Like `command`, for the action of a group without a subcommand."""

    def register(function: Command[P]) -> Command[P]:
        work = cast("Callable[..., None]", function)
        app.callback(invoke_without_command=True, epilog=epilog(examples))(_invoked(work))
        return function

    return register


def _invoked(work: Callable[..., None]) -> Callable[..., None]:
    """Wrap the function as Typer calls it."""

    own = inspect.signature(work).parameters

    def invoked(context: typer.Context, **given: Any) -> None:
        after = {option: None if option in own else given.pop(option) for option in _SHARED}
        if context.invoked_subcommand is not None:
            if any(after.values()):
                raise typer.BadParameter(f"put options after `{context.invoked_subcommand}`")
            return

        def checked(call: CommandContext) -> None:
            _check_utf8(given)
            work(call, **given)

        _run(context, after, checked)

    invoked.__doc__ = work.__doc__
    cast("Any", invoked).__signature__ = _signature(work)
    return invoked


def epilog(examples: Sequence[str]) -> str:
    return escape("\n".join(["Examples:", *(f"  {example}" for example in examples)]))


def end_quietly(error: OSError) -> int:
    """Return the exit code after a failed write to stdout, and keep Python from writing again at exit."""
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return BROKEN_PIPE if isinstance(error, BrokenPipeError) else MENDABLE


def _check_utf8(given: dict[str, Any]) -> None:
    """Reject arguments that are not UTF-8; Python decodes such bytes to lone surrogates."""
    for name, value in given.items():
        for text in value if isinstance(value, list) else [value]:
            if isinstance(text, str) and any("\ud800" <= char <= "\udfff" for char in text):
                option = name.strip("_").replace("_", " ")
                raise InvalidRequest(f"{option} is not UTF-8; convert it first, for example with iconv")


def _signature(function: Callable[..., None]) -> inspect.Signature:
    """Build a signature of the context, the function's own parameters and the shared options."""
    keyword = inspect.Parameter.KEYWORD_ONLY
    own = list(inspect.signature(function).parameters.values())[1:]
    shared = [
        inspect.Parameter(option, keyword, annotation=annotation, default=default)
        for option, (annotation, default) in _SHARED.items()
        if option not in {parameter.name for parameter in own}
    ]
    context = inspect.Parameter("context", keyword, annotation=typer.Context)
    return inspect.Signature([context, *(parameter.replace(kind=keyword) for parameter in own), *shared])


def _run(context: typer.Context, after: dict[str, Any], work: Callable[[CommandContext], None]) -> None:
    """Run a command and turn Memplane's errors into exit codes; other exceptions are bugs and propagate."""
    wiring = context.find_object(Wiring)
    assert wiring is not None
    before = context.find_root().params
    data, space = (before.get(name) if after[name] is None else after[name] for name in ("data", "space"))
    json = bool(after["json"] or before.get("json"))
    program = context.find_root().command

    def run(wiring: Wiring, arguments: Sequence[str]) -> int:
        return program.main(arguments, prog_name=program.name, standalone_mode=False, obj=wiring) or 0

    try:
        call = CommandContext(wiring, run=run, data=data, space=space, json=json)
        try:
            work(call)
        finally:
            call.close()
        sys.stdout.flush()
    except MemplaneError as exc:
        report(exc.code, str(exc), json=json)
        raise typer.Exit(exit_code(exc)) from exc
    except BrokenPipeError as exc:
        raise typer.Exit(end_quietly(exc)) from exc
    except OSError as exc:
        report("output", f"cannot write the output: {exc}", json=json)
        raise typer.Exit(end_quietly(exc)) from exc
