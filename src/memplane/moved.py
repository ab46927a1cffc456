"""Old names of modules that the documentation of earlier versions showed. They keep working, with a warning."""

import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

MOVED = {
    "memplane.doctor": "memplane.space.doctor",
    "memplane.doors.entrabot": "memplane.adapters.entrabot",
    "memplane.doors.entrabot.overlay": "memplane.adapters.entrabot.overlay",
    "memplane.doors.ipc.brief": "memplane.adapters.carapace.pipeline",
    "memplane.doors.tool.handler": "memplane.adapters.anthropic.handler",
    "memplane.governance.audit": "memplane.adapters.carapace.audit",
    "memplane.governance.redact": "memplane.safety.redact",
    "memplane.identity.keys": "memplane.auth.keys",
    "memplane.objects.cached": "memplane.sync.cached",
    "memplane.objects.opening": "memplane.sync.opening",
}


class _MovedModule(Loader):
    """Makes a module that looks its names up in the one that replaced it; a package above moved modules is empty."""

    def exec_module(self, module: ModuleType) -> None:
        target = MOVED.get(module.__name__)
        if target is None:
            return
        warnings.warn(f"{module.__name__} is now {target}", DeprecationWarning, stacklevel=2)
        current = import_module(target)
        module.__dict__["__getattr__"] = lambda name: getattr(current, name)


class MovedModules(MetaPathFinder):
    """Asked last, so it costs nothing unless an import would fail."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,  # noqa: ARG002 - part of the protocol
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> ModuleSpec | None:
        is_package = any(name.startswith(f"{fullname}.") for name in MOVED)
        if fullname in MOVED or (is_package and fullname != "memplane"):
            return ModuleSpec(fullname, _MovedModule(), is_package=is_package)
        return None


def keep_old_names() -> None:
    """Let old names be imported."""
    if not any(isinstance(finder, MovedModules) for finder in sys.meta_path):
        sys.meta_path.append(MovedModules())
