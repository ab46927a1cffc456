"""Plain text for distillation, in many languages, from Debian's documentation and package descriptions.

    python -m training.texts FOLDER OUT

FOLDER holds unpacked packages and the package lists, as `training/README.md` says.
"""

import gzip
import html
import json
import random
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

LANGUAGES = ("en", "de", "fr", "es", "pt", "it", "ru", "zh", "ja", "ko", "ar", "nl")
_CHARS_MIN, _CHARS_MAX = 12, 500
_TRANSLATED_CHARS_MAX = 320
_ENGLISH = 80_000
_PER_LANGUAGE = 10_000
_SEED = 1
_BLOCK = re.compile(r"<(p|li|dd|h[1-4])\b[^>]*>(.*?)</\1>", re.DOTALL | re.IGNORECASE)
_TAG = re.compile(r"<[^>]+>")
_SPACE = re.compile(r"\s+")
_FORTUNES = {
    "de": "de",
    "es": "es",
    "it": "it",
    "ru": "ru",
    "brasil": "pt",
    "chinese": "zh",
    "song100": "zh",
    "tang300": "zh",
}


def main(folder: Path, out: Path) -> None:
    """Writes `texts.json.gz`, English texts, and `multilingual/translations.json.gz`, rows of a text by language."""
    pages = _pages(folder)
    translations = [*_translated(pages), *_descriptions(folder)]
    english = {text for (_, language), texts in pages.items() if language == "en" for text in texts}
    english |= {text for language, text in _fortunes(folder) if language == "en"}
    english |= {row["en"] for row in translations}
    chance = random.Random(_SEED)
    texts = sorted(text for text in english if _CHARS_MIN <= len(text) <= _CHARS_MAX)
    chance.shuffle(texts)
    (out / "multilingual").mkdir(parents=True, exist_ok=True)
    _write(out / "texts.json.gz", texts[:_ENGLISH])
    chosen = _balanced(translations, chance)
    _write(out / "multilingual" / "translations.json.gz", chosen)
    counts = Counter(language for row in chosen for language in row)
    print(f"{min(len(texts), _ENGLISH)} English texts; {len(chosen)} translated: {dict(counts)}")


def _balanced(translations: list[dict[str, str]], chance: random.Random) -> list[dict[str, str]]:
    """At most so many paragraphs a language; those in the languages with the fewest first."""
    usual = Counter(language for row in translations for language in row)
    chance.shuffle(translations)
    translations.sort(key=lambda row: min(usual[language] for language in row))
    used: Counter[str] = Counter()
    chosen: list[dict[str, str]] = []
    for row in translations:
        kept = {
            language: text
            for language, text in row.items()
            if language != "en" and used[language] < _PER_LANGUAGE and len(text) <= _TRANSLATED_CHARS_MAX
        }
        if kept and len(row["en"]) <= _TRANSLATED_CHARS_MAX:
            used.update(kept.keys())
            chosen.append({"en": row["en"], **kept})
    return chosen


def _write(path: Path, content: object) -> None:
    with gzip.open(path, "wt", encoding="utf-8") as file:
        json.dump(content, file, ensure_ascii=False)


def _plain(text: str) -> str:
    return _SPACE.sub(" ", html.unescape(_TAG.sub("", text))).strip()


def _pages(folder: Path) -> dict[tuple[str, str], list[str]]:
    """The paragraphs of every page, by its name and language."""
    pages: dict[tuple[str, str], list[str]] = {}
    for path in sorted(folder.rglob("*.html")):
        language = next((part[:2] for part in path.parts if re.fullmatch(r"[a-z]{2}-[A-Z]{2}", part)), "en")
        if language in LANGUAGES:
            found = _BLOCK.finditer(path.read_text("utf-8", errors="replace"))
            pages[path.name, language] = [_plain(block[2]) for block in found]
    return pages


def _translated(pages: dict[tuple[str, str], list[str]]) -> Iterator[dict[str, str]]:
    """A row per paragraph of the pages that have as many in the other language as in English."""
    for (name, language), paragraphs in pages.items():
        english = pages.get((name, "en"), [])
        if language != "en" and len(english) == len(paragraphs):
            for ours, theirs in zip(english, paragraphs, strict=True):
                if ours != theirs and all(_CHARS_MIN <= len(text) <= _CHARS_MAX for text in (ours, theirs)):
                    yield {"en": ours, language: theirs}


def _fortunes(folder: Path) -> Iterator[tuple[str, str]]:
    for path in sorted((folder / "usr/share/games/fortunes").rglob("*")):
        if not path.is_file() or path.suffix in {".dat", ".u8"} or path.is_symlink():
            continue
        named = next(
            (
                language
                for name, language in _FORTUNES.items()
                if name in path.parts or path.name.startswith(name)
            ),
            "en",
        )
        try:
            content = path.read_text("utf-8")
        except UnicodeDecodeError:
            continue
        for piece in re.split(r"^%\s*$", content, flags=re.MULTILINE):
            text = _plain(piece)
            if _CHARS_MIN <= len(text) <= _CHARS_MAX:
                yield named, text


def _descriptions(folder: Path) -> list[dict[str, str]]:
    """A row per paragraph whose translations have as many paragraphs as the English text."""
    found: dict[str, dict[str, list[str]]] = defaultdict(dict)
    for path in sorted(folder.glob("Translation-*")):
        language = path.name.removeprefix("Translation-").replace("%5f", "_")[:2]
        if language not in LANGUAGES:
            continue
        for stanza in path.read_text("utf-8", errors="replace").split("\n\n"):
            digest = re.search(r"^Description-md5: (\w+)", stanza, re.MULTILINE)
            described = re.search(
                r"^Description-[a-z]{2}(?:_[A-Z]{2})?: (.*)", stanza, re.MULTILINE | re.DOTALL
            )
            if digest and described:
                short, _, rest = described[1].partition("\n")
                found[digest[1]][language] = [_plain(part) for part in (short, *re.split(r"\n \.\n", rest))]
    rows: list[dict[str, str]] = []
    for digest in sorted(found):
        versions = found[digest]
        if len(versions) < 2 or "en" not in versions:
            continue
        for place in range(len(versions["en"])):
            row = {
                language: paragraphs[place]
                for language, paragraphs in versions.items()
                if len(paragraphs) == len(versions["en"])
                and _CHARS_MIN <= len(paragraphs[place]) <= _CHARS_MAX
            }
            same = [language for language in row if language != "en" and row[language] == row.get("en")]
            for language in same:
                del row[language]
            if "en" in row and len(row) > 1:
                rows.append(row)
    return rows


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
