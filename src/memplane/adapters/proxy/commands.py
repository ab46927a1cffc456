"""`memplane chat`: chat with a model that has memory."""

from typing import Annotated

import typer

from memplane.terminal.call import CommandContext
from memplane.terminal.command import command
from memplane.terminal.options import Conversation

app = typer.Typer()


@command(
    app,
    examples=[
        "memplane chat                                    # with an echo model",
        "memplane chat --url http://127.0.0.1:11434/v1 --model llama3.2",
        "memplane chat --url http://memplane.example:8700 --model openai/gpt-4o --space alice",
        "echo 'Where do I live?' | memplane chat --json",
    ],
)
def chat(
    call: CommandContext,
    url: Annotated[
        str | None,
        typer.Option(
            "--url",
            metavar="URL",
            help="A Memplane server or any OpenAI-compatible base URL (default: a built-in echo model).",
        ),
    ] = None,
    model: Annotated[str | None, typer.Option("--model", "-m", metavar="NAME", help="Model name.")] = None,
    conversation: Conversation = None,
) -> None:
    """Chat through the proxy and see the memories recalled for each answer. Ctrl-D or /quit exits.

    Set MEMPLANE_TOKEN for a Memplane server, or OPENAI_API_KEY for a provider.
    """
    from memplane.adapters.proxy import chat as session  # imports a web server

    session.chat(call, url, model, conversation)
