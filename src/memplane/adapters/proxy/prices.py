"""The cost of turns from a price list, for providers that do not report it."""

from collections.abc import Iterable

import msgspec

from memplane.errors import SettingsInvalid

_PER = 1_000_000
_WITHOUT_CACHED, _WITH_CACHED = 2, 3
_USD_MAX = 1e6


class Price(msgspec.Struct, frozen=True):
    """In dollars per million tokens."""

    prompt: float
    completion: float
    cached: float

    def of(self, *, prompt: int, completion: int, cached: int) -> float:
        """Cached tokens are included in the prompt tokens."""
        cached = min(cached, prompt)
        spent = (prompt - cached) * self.prompt + cached * self.cached + completion * self.completion
        return spent / _PER


class Prices:
    """Prices by model name, or by prefix if the name ends with a star. Raises `SettingsInvalid`."""

    def __init__(self, listed: Iterable[str]) -> None:
        self._prices = dict(_price(text) for text in listed)

    def of(self, model: str) -> Price | None:
        """The price of the exact name, else of the longest prefix; None if there is none."""
        exact = self._prices.get(model)
        if exact is not None:
            return exact
        begun = [name for name in self._prices if name.endswith("*") and model.startswith(name[:-1])]
        return self._prices[max(begun, key=len)] if begun else None


def _price(text: str) -> tuple[str, Price]:
    model, equals, spelled = text.rpartition("=")
    parts = spelled.split("/")
    try:
        numbers = [float(part) for part in parts]
    except ValueError:
        numbers = []
    fits = len(numbers) in {_WITHOUT_CACHED, _WITH_CACHED} and all(0 <= it < _USD_MAX for it in numbers)
    if not equals or not model.strip() or not fits:
        raise SettingsInvalid(
            f"proxy_prices: {text!r} is not a price; use model=prompt/completion or model=prompt/completion/cached in "
            "dollars per million tokens, for example gpt-4o=2.50/10/1.25, separated by commas"
        )
    return model.strip(), Price(
        numbers[0], numbers[1], numbers[2] if len(numbers) == _WITH_CACHED else numbers[0]
    )
