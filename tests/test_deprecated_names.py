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


def test_a_renamed_method_of_the_plane_keeps_working(plane):
    """
    The old name answers as the new one, with a warning.
    """
    with pytest.warns(DeprecationWarning, match="owners_of"):
        owners = plane.whose("default", memplane.ResourceKind.DOCUMENT, "nothing")

    assert owners == plane.owners_of("default", memplane.ResourceKind.DOCUMENT, "nothing")
