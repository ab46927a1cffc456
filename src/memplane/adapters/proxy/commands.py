"""`memplane chat`: talk to a model that remembers."""

from typing import Annotated

import typer

from memplane.terminal.call import CommandContext
from memplane.terminal.command import command
from memplane.terminal.options import Conversation

app = typer.Typer()


@command(
    app,
    examples=[
        "memplane chat                                    # with a model that only echoes",
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
            help="A Memplane server, or any base URL that speaks as OpenAI's; else a bundled echo.",
        ),
    ] = None,
    model: Annotated[str | None, typer.Option("--model", "-m", metavar="NAME", help="Which model.")] = None,
    conversation: Conversation = None,
) -> None:
    """Talk through the proxy, and see beside each answer what was recalled for it. Ends with Ctrl-D or /quit.

    MEMPLANE_TOKEN holds the key of a Memplane server, OPENAI_API_KEY that of a provider.
    """
    from memplane.adapters.proxy import chat as session  # brings a web server

    session.chat(call, url, model, conversation)
