"""Names of earlier versions keep working, and say what to use instead."""

import sys
from importlib import import_module

import pytest

import memplane
from memplane.moved import MOVED


def test_a_renamed_export_keeps_working():
    """
    The old name is the new object, with a warning.
    """
    with pytest.warns(DeprecationWarning, match="ResourceKind"):
        old = memplane.Sort

    assert old is memplane.ResourceKind


def test_an_unknown_export_is_an_attribute_error():
    """
    Other names fail as in any module.
    """
    with pytest.raises(AttributeError, match="Nonsense"):
        _ = memplane.Nonsense


def test_a_renamed_method_of_the_plane_keeps_working(plane):
    """
    The old name answers as the new one, with a warning.
    """
    with pytest.warns(DeprecationWarning, match="owners_of"):
        owners = plane.whose("default", memplane.ResourceKind.DOCUMENT, "nothing")

    assert owners == plane.owners_of("default", memplane.ResourceKind.DOCUMENT, "nothing")


@pytest.mark.parametrize(
    ("old", "name"),
    [
        ("memplane.doctor", "examine"),
        ("memplane.doors.entrabot", "__path__"),
        ("memplane.doors.entrabot.overlay", "install"),
        ("memplane.doors.ipc.brief", "get_brief"),
        ("memplane.doors.tool.handler", "MemplaneMemoryTool"),
        ("memplane.governance.audit", "AuditLog"),
        ("memplane.governance.redact", "redact_tree"),
        ("memplane.identity.keys", "Grant"),
        ("memplane.objects.cached", "CachedBackend"),
        ("memplane.objects.opening", "open_store"),
    ],
)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_moved_module_keeps_its_name(monkeypatch, old, name):
    """
    What the documentation imported from a module is imported from its old name, with a warning.
    """
    for loaded in [it for it in sys.modules if it in MOVED]:
        monkeypatch.delitem(sys.modules, loaded)

    with pytest.warns(DeprecationWarning, match=MOVED[old]):
        module = import_module(old)

    assert name == "__path__" or getattr(module, name) is getattr(import_module(MOVED[old]), name)


def test_an_unknown_module_is_an_import_error():
    """
    Other names fail as for any package.
    """
    with pytest.raises(ModuleNotFoundError):
        import_module("memplane.doors.nonsense")
