"""What `memplane chat` does, loaded when it runs."""

import secrets
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from typing import cast

from rich.table import Table
from rich.text import Text

from memplane.config import settings_from
from memplane.doors.chat.echo import MODEL, EchoModel
from memplane.doors.chat.local import proxy_before
from memplane.doors.chat.talk import Exchange, Talk, is_memplane
from memplane.doors.cli.call import Call
from memplane.doors.cli.output import line
from memplane.engine import Engine
from memplane.errors import InvalidRequest
from memplane.governance.neutral import one_line, printable

_PROVIDER_MODEL = "gpt-4o-mini"
_ENDINGS = frozenset({"/quit", "/exit"})
_HELP = "/help"
_RECALLED_CHARS_MAX = 200


def chat(call: Call, url: str | None, model: str | None, conversation: str | None) -> None:
    name = conversation or f"chat-{secrets.token_hex(4)}"
    exchanges: list[Exchange] = []
    failed: InvalidRequest | None = None
    with ExitStack() as opened:
        place, key, chosen = _reached(call, url, model, opened)
        talk = Talk(place, key=key, space=call.space_name, conversation=name, model=chosen)
        call.out.note(
            f"Conversation {name} in space {call.space_name}, with {chosen}. Ctrl-D or /quit ends it."
        )
        for said in _said(call):
            try:
                exchange = talk.say(said)
            except InvalidRequest as exc:
                failed = exc
                if not sys.stdin.isatty():
                    break
                call.out.warn(str(exc))
                continue
            failed = None
            exchanges.append(exchange)
            _show(call, exchange)
    if failed is not None:
        raise failed
    if call.out.json:
        document = {"space": call.space_name, "conversation": name, "model": chosen, "exchanges": exchanges}
        call.out.answer(document)


def _reached(call: Call, url: str | None, model: str | None, opened: ExitStack) -> tuple[str, str, str]:
    """Address, key and model. What is no Memplane server gets a proxy of this process before it."""
    environment = call.wiring.environment
    if url is not None and is_memplane(url):
        return url, environment.get("MEMPLANE_TOKEN", ""), model or _PROVIDER_MODEL
    upstream = opened.enter_context(EchoModel()).url if url is None else url
    settings = settings_from({**environment, **({} if url is not None else {"OPENAI_API_KEY": "echo"})})
    plane = cast("Engine", call.plane)
    place, key = opened.enter_context(proxy_before(plane, settings, upstream, call.space_name))
    return place, key, model or (MODEL if url is None else _PROVIDER_MODEL)


def _said(call: Call) -> Iterator[str]:
    """Line after line, from a person or a pipe."""
    while True:
        if sys.stdin.isatty():
            sys.stderr.write("> ")
            sys.stderr.flush()
        try:
            text = sys.stdin.readline()
        except UnicodeDecodeError as exc:
            raise InvalidRequest("stdin is not UTF-8; convert it first, for example with iconv") from exc
        if not text or text.strip() in _ENDINGS:
            if sys.stdin.isatty():
                call.out.note("")
            return
        if text.strip() == _HELP:
            call.out.show(
                line(
                    "Say something. What is recalled for it stands beside the answer; Ctrl-D or /quit ends it.",
                )
            )
        elif text.strip():
            yield text.strip()


def _show(call: Call, exchange: Exchange) -> None:
    if not sys.stdin.isatty():
        call.out.tell(line((f"> {one_line(exchange.said)}", "bold")))
    beside = Table.grid(padding=(0, 3), expand=False)
    beside.add_column(overflow="fold", ratio=2)
    beside.add_column(overflow="fold", ratio=1, style="dim")
    beside.add_row(Text(printable(exchange.answered)), Text("\n".join(_recalled(exchange))))
    call.out.tell(beside)


def _recalled(exchange: Exchange) -> list[str]:
    if not exchange.recalled:
        return ["nothing recalled"]
    shown = [one_line(it.text[:_RECALLED_CHARS_MAX]) for it in exchange.recalled]
    return [f"recalled ({len(shown)}):", *(f"· {text}" for text in shown)]
