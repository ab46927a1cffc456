"""Names of earlier versions keep working, and say what to use instead."""

import pytest

import memplane


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
