"""Settings out of the environment: what cannot be used is said under the name that was set."""

from pathlib import Path

import pytest

from memplane import Memplane
from memplane.config import Settings, settings_from
from memplane.errors import SettingsInvalid


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("MEMPLANE_PORT", "eighty"),
        ("MEMPLANE_WORKERS", "1.5"),
        ("MEMPLANE_METRICS_OPEN", "perhaps"),
        ("MEMPLANE_LOG_LEVEL", "loud"),
    ],
)
def test_a_variable_that_cannot_be_used_is_named(variable, value):
    """
    One of many variables is wrong, so the message begins with which.
    """
    with pytest.raises(SettingsInvalid) as caught:
        settings_from({"MEMPLANE_HOST": "127.0.0.1", variable: value})

    assert str(caught.value).startswith(f"{variable} is invalid: ")
    assert "$." not in str(caught.value)


def test_several_values_have_commas_between():
    """
    A comma too many names nothing.
    """
    assert settings_from({"MEMPLANE_HOSTS": "memory, memory.example,"}).hosts == ("memory", "memory.example")


def test_a_word_that_is_none_of_the_choices_is_told_them():
    """
    Nobody has to look them up.
    """
    with pytest.raises(SettingsInvalid, match=r"MEMPLANE_RETENTION is invalid: .*; use one of forever, adr$"):
        settings_from({"MEMPLANE_RETENTION": "long"})


def test_a_file_that_is_not_there_is_named_once(tmp_path):
    """
    The variable, the file and the reason, each once.
    """
    missing = tmp_path / "key"

    with pytest.raises(SettingsInvalid) as caught:
        settings_from({"MEMPLANE_KEY_FILE": str(missing)})

    assert str(caught.value) == f"MEMPLANE_KEY_FILE: {missing} cannot be read: No such file or directory"


def test_a_file_that_is_no_text_is_said_without_its_content(tmp_path):
    """
    What is in it may be a secret.
    """
    (tmp_path / "key").write_bytes(b"hunter2\xff")

    with pytest.raises(SettingsInvalid) as caught:
        settings_from({"MEMPLANE_KEY_FILE": str(tmp_path / "key")})

    assert str(caught.value).endswith("cannot be read: it is not text")


@pytest.mark.parametrize(
    "data",
    [
        "POSTGRESQL://u:hunter2@h/x",
        " postgresql://u:hunter2@h/x",
        "postgresql+psycopg://u:hunter2@h/x",
        "postgresql:u:hunter2@h/x",
        "host=h password=hunter2 dbname=x",
        "password = 'hunter2' host=h",
        " application_name=a password=hunter2",
        "mysql://u:hunter2@h/x",
        "'postgresql://u:hunter2@h/x'",
        "data=postgresql://u:hunter2@h/x",
    ],
)
def test_what_is_almost_an_address_is_no_directory(data):
    """
    It would be made with the password in its name, and named in messages.
    """
    with pytest.raises(SettingsInvalid, match="postgresql://user@host/name") as refused:
        Memplane.open(data)
    with pytest.raises(SettingsInvalid, match="postgresql://user@host/name"):
        _ = Settings(data=data).place

    assert "hunter2" not in str(refused.value)
    assert not Path("POSTGRESQL:").exists()
