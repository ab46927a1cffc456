"""The `helmdeck://` resources. Each is generated when it is read, for the calling user."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from memplane.adapters.helmdeck.caller import CallerFacts
from memplane.adapters.helmdeck.packs import PACKS, VERSION

MIME_TYPE = "application/json"


class HelmdeckResource(msgspec.Struct, frozen=True, kw_only=True):
    """A resource and the function that generates it."""

    name: str
    description: str
    read: Callable[[CallerFacts], Any]

    @property
    def uri(self) -> str:
        return f"helmdeck://{self.name}"

    @property
    def listing(self) -> dict[str, str]:
        return {"uri": self.uri, "name": self.name, "description": self.description, "mimeType": MIME_TYPE}


def _packs(_caller: CallerFacts) -> Any:
    return {
        "packs": [
            {
                "name": pack.name,
                "version": VERSION,
                "description": pack.description,
                "input": pack.input_schema,
            }
            for pack in PACKS.values()
        ]
    }


def _routing_guide(_caller: CallerFacts) -> Any:
    return {
        "routes": [
            {
                "when": "the user states a durable preference, convention or decision",
                "use": "helmdeck.memory_store",
            },
            {"when": "the user asks to forget something, or everything", "use": "helmdeck.memory_forget"},
            {"when": "before storing, to see which facts exist", "use": "helmdeck://my-memory"},
            {"when": "before running a pack, to see this caller's defaults", "use": "helmdeck://my-defaults"},
            {"when": "the text of a fact is needed", "use": "query on the QMD endpoint"},
        ]
    }


def _context_budgets(_caller: CallerFacts) -> Any:
    """Memplane runs no packs with a context budget, so the list is empty."""
    return {"budgets": [], "note": "no pack of this server has a context budget"}


ALL = (
    HelmdeckResource(name="packs", description="The packs this server offers.", read=_packs),
    HelmdeckResource(
        name="routing-guide", description="Which pack or resource to use when.", read=_routing_guide
    ),
    HelmdeckResource(
        name="my-defaults",
        description="Defaults learned from your earlier pack and pipeline runs.",
        read=CallerFacts.my_defaults,
    ),
    HelmdeckResource(
        name="my-memory",
        description="Your fact categories, with counts and the newest keys of each.",
        read=CallerFacts.my_memory,
    ),
    HelmdeckResource(name="context-budgets", description="Context budgets of packs.", read=_context_budgets),
    HelmdeckResource(
        name="my-plans", description="Plans made for the same intent, grouped.", read=CallerFacts.my_plans
    ),
)
BY_URI: Mapping[str, HelmdeckResource] = {resource.uri: resource for resource in ALL}
