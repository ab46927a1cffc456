"""Every function of the package that reads text, with arguments to call it by, and hostile texts of any length."""

import inspect
import typing
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from growth import Make, TooSlow, modules
from memplane.config import Settings
from memplane.documents.chunk import chunks_of, sections_of
from memplane.documents.parse import parse
from memplane.documents.parsed import ParseBudget, ParseLimits
from memplane.errors import MemplaneError
from memplane.extract.catalog import PredicateCatalog, load_catalog
from memplane.extract.proposition import Tense
from memplane.extract.rules import extract
from memplane.extract.time import find_times
from memplane.safety.redact.rule import NATIVE, Style

Work = Callable[[str], object]

_PACKAGES = (
    "memplane.safety", "memplane.extract", "memplane.recall", "memplane.documents", "memplane.compaction",
    "memplane.models.language", "memplane.storage.words", "memplane.storage.postgres.text", "memplane.sync.tree",
    "memplane.sync.interactions", "memplane.ledger", "memplane.memory.checks", "memplane.memory.paths",
    "memplane.memory.runs", "memplane.console.links", "memplane.adapters.anthropic.commands", "memplane.adapters.carapace.wire",
    "memplane.adapters.clawdapus.history_pages", "memplane.adapters.clawdapus.wire", "memplane.adapters.helmdeck.wire",
    "memplane.adapters.proxy.answer", "memplane.adapters.proxy.apis", "memplane.adapters.proxy.headers",
    "memplane.server.request",
)  # fmt: skip


def hostile_texts() -> Iterator[tuple[str, Make]]:
    """Texts that make backtracking, rescanning and nesting expensive."""
    units = (
        "\n", " ", "\t", '"', "'", "(", "[", "{", "<", ")", "]", ",", ".", "-", "=", "#", "*", "_", "`", "/", "\\", "!", "?",
        ":", "~", "|", "&", "@", "0", "a", "A", "\u200b", "\u0301", "\u4e00", "\u0130", "\ud83d\ude00".encode("utf-16", "surrogatepass").decode("utf-16"),
        "a ", "A ", "1 ", "1.", "a.", "a,", "- ", "* ", "> ", "1. ", ". ", "? ", "\n\n", "a\n", "\n> ", "\n- ", "\n    ", "[a](", "![", "](", "**", "<a ",
        "<b>", "</", "<!--", "<td>", "&amp;", "&#", "${", "{{", "```", "~~~", "[^", "from ", "moved ", "token=", "password: ",
        "ignore ", "the ", "and ", "where ", "to ", "at 5 ", "on 1 May ", "two weeks ", "every ", "I like ", "my ", "you are now ",
        "section ", "Bearer ", "sk-", "QUJD", "aGVsbG8gd29ybGQ", "http://a.", "a@", "a@b.", "1,", "1-", "12:", "~000000000000", "é", "'s ",
        "don't ", "Anna ", "is ", "of ", "...", "?!", "\r", "\x00", "\x1b[", "-----BEGIN ", "data:", "|a", "|-", "<|", "=\n", "-\n", "a_", "%7B", "~/",
    )  # fmt: skip
    for unit in units:
        yield f"{unit!r} * n", lambda size, unit=unit: unit * (size // len(unit))
    for unit in ("\n", " ", "\t", "'", "-", "_", "a", ".", "\u200b", "1", "<", "["):
        for before, after in _ENDS:
            yield (
                f"{before!r} + {unit!r} * n + {after!r}",
                lambda size, unit=unit, before=before, after=after: before + unit * size + after,
            )


_ENDS = (
    ("hello", "x system prompt"),
    ("ignore all previous", "instructions"),
    ("I moved to", "Rome last week."),
    ("what does section", "say about password="),
    ("<a href=", ">"),
)


def text_functions() -> Iterator[tuple[str, Work]]:
    """Every public function whose first parameter is text, by name, and entry points that need more than text."""
    for name, function in _public():
        work = _called(function)
        if work is not None:
            yield name, work
    yield from _ENTRY_POINTS.items()


def unreached() -> set[str]:
    """Functions of text that are not called, because their other arguments are not plain."""
    return {name for name, function in _public() if _called(function) is None}


def _public() -> Iterator[tuple[str, Callable[..., object]]]:
    for module in modules("memplane"):
        if module.__name__.startswith(_PACKAGES):
            for name, value in sorted(vars(module).items()):
                if (
                    inspect.isfunction(value)
                    and value.__module__ == module.__name__
                    and not name.startswith("_")
                ):
                    first = next(iter(inspect.signature(value).parameters.values()), None)
                    if first is not None and first.annotation in (str, bytes, str | bytes, str | None, "str"):
                        yield f"{module.__name__}:{name}", value


_TEXTS = (str, bytes, str | bytes, str | None)
_PLAIN = "I moved to Rome on 1 May."


def _called(function: Callable[..., object]) -> Work | None:
    """The function with everything but its texts given; None if that cannot be made."""
    parameters = inspect.signature(function).parameters.values()
    try:
        hints = typing.get_type_hints(function)
        fixed = dict(_given(parameters, hints))
    except (NameError, LookupError):
        return None
    several = [one for one in parameters if one.kind is one.VAR_POSITIONAL]
    texts = [one.name for one in parameters if one.kind is not one.VAR_POSITIONAL and _is_text(one, hints)]

    def call(text: str) -> None:
        given = {name: text.encode("utf-8", "replace") if hints[name] is bytes else text for name in texts}
        found = function(text) if several and not texts else function(**given, **fixed)
        if isinstance(found, Iterator):
            for _ in found:
                pass

    def work(text: str) -> None:
        try:
            call(text)
        except TooSlow:
            raise
        except Exception:  # noqa: BLE001
            return  # a refused text costs no less until then

    try:
        call(_PLAIN)
    except (TypeError, AttributeError):
        return None  # it was called wrongly, and would be measured doing nothing
    except Exception:  # noqa: BLE001
        return work
    return work


def _given(
    parameters: Collection[inspect.Parameter], hints: Mapping[str, Any]
) -> Iterator[tuple[str, object]]:
    for one in parameters:
        optional = one.default is not one.empty or one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD)
        if not optional and not _is_text(one, hints):
            yield one.name, _VALUES[one.name] if one.name in _VALUES else _ARGUMENTS[hints[one.name]]()


def _is_text(one: inspect.Parameter, hints: Mapping[str, Any]) -> bool:
    needed = one.default is one.empty or one.name == "before"
    return needed and hints.get(one.name) in _TEXTS and not isinstance(_VALUES.get(one.name), str)


_NOW = 1_700_000_000_000_000
_VALUES: Mapping[str, Any] = {
    "role": "user", "media_type": "text/markdown", "field": "text", "kind": "fact", "day": "2026-01-02", "name": "name",
    "now": _NOW, "at": datetime(2026, 1, 2, tzinfo=UTC), "tense": Tense.PAST, "chars_max": 500, "words_max": 40,
    "line_bytes_max": 1 << 20, "reference": _NOW, "size": 4_096, "speakers": ("Anna", "Tom"), "propositions": (),
    "names": ("Toaster manual.pdf", "The Verge report"), "path": ("Title",), "foreign": False, "start": 0,
}  # fmt: skip
_ARGUMENTS: Mapping[Any, Callable[[], Any]] = {
    PredicateCatalog: load_catalog,
    ParseLimits: ParseLimits,
    ParseBudget: lambda: ParseBudget(ParseLimits()),
    Settings: Settings,
    Style: lambda: NATIVE,
    int: lambda: 100,
    bool: lambda: False,
    Sequence[str]: lambda: ("Anna", "Tom"),
    tuple[str, ...]: lambda: ("Anna", "Tom"),
}


def _document(media_type: str) -> Work:
    def work(text: str) -> None:
        try:
            parsed = parse(text, media_type)
        except MemplaneError:
            return
        for _ in chunks_of(parsed, sections_of(parsed)):
            pass

    return work


_ENTRY_POINTS: Mapping[str, Work] = {
    **{f"documents: {kind}": _document(kind) for kind in ("text/plain", "text/markdown", "text/html")},
    "extract: an assistant's message": lambda text: extract(
        text, role="assistant", catalog=load_catalog(), before=text
    ),
    "time: future": lambda text: find_times(text, _NOW, prefer="future"),
}
