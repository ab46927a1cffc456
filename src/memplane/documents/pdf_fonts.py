"""How much the fonts of a page come to. Before its first letter all of them are read, once for each name that they have,
and so are those of every form on it: a kilobyte of names may take gigabytes."""

from typing import Any

from pypdf.generic import DictionaryObject
from pypdf.generic._font import Font

from memplane.documents.limits import Budget
from memplane.errors import DocumentUnreadable

_SIGNS_MAX = 2_000_000
"""Of all fonts that are in memory at once; a font for Chinese has some ten thousand."""


class Fonts:
    """Weighs each font and each form of a document once."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._weighed: dict[int, tuple[object, int]] = {}
        """The object is kept, so that its id stays its own."""

    def check(self, page: Any) -> None:
        """Refuse a page whose fonts take too much room."""
        self._weight_of(page)

    def _weight_of(self, holder: Any) -> int:
        """What fonts a page or a form needs, with those of the heaviest form that stands in it."""
        resources = _dictionary(holder.get_inherited("/Resources"))
        weight = 0
        for font in _members(resources, "/Font"):
            weight += self._once(font, self._signs_of)
            _check(weight)
        forms = [form for form in _members(resources, "/XObject") if form.get("/Subtype") == "/Form"]
        weight += max((self._once(form, self._weight_of) for form in forms), default=0)
        _check(weight)
        return weight

    def _signs_of(self, font: DictionaryObject) -> int:
        self._budget.check(0)
        try:
            read = Font.from_font_resource(font)
        except (AttributeError, TypeError):  # passed over when the page is read, too
            return 1
        return 1 + len(read.character_map) + len(read.character_widths)

    def _once(self, thing: DictionaryObject, weigh: Any) -> int:
        known = self._weighed.get(id(thing))
        if known is None:
            self._weighed[id(thing)] = (thing, 0)  # a form that stands in itself is not read again
            known = self._weighed[id(thing)] = (thing, weigh(thing))
        return known[1]


def _check(weight: int) -> None:
    if weight > _SIGNS_MAX:
        raise DocumentUnreadable(
            f"a page of the PDF has fonts with more than {_SIGNS_MAX:,} signs; print it anew and upload that"
        )


def _members(resources: DictionaryObject, name: str) -> list[DictionaryObject]:
    found = (each.get_object() for each in _dictionary(resources.get(name)).values())
    return [each for each in found if isinstance(each, DictionaryObject)]


def _dictionary(thing: Any) -> DictionaryObject:
    there = None if thing is None else thing.get_object()
    return there if isinstance(there, DictionaryObject) else DictionaryObject()
