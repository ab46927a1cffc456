"""Calibration: which fitted weights a model's signals are read with."""

import shutil
from base64 import b64encode
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memplane import Memplane
from memplane.config import Settings
from memplane.errors import SettingsInvalid
from memplane.models.embedding import folder_of
from memplane.models.local import ARCTIC_EMBED_S, LocalEmbedder, model_in
from memplane.recall.calibration import Logistic, _shipped, calibration_of, wording
from memplane_eval.cache import CachedEmbedder, Stopwatch

QUESTION = "where do I live?"
NEVER = Logistic(-20.0)


@pytest.fixture
def own_model(tmp_path):
    folder = tmp_path / "mine"
    folder.mkdir()
    for name in ("model.onnx", "tokenizer.json"):
        shutil.copy(ARCTIC_EMBED_S.folder / name, folder)
    return folder


def recalled(folder, data) -> str:
    settings = Settings(data=str(data), embedding_model=str(folder))
    with Memplane.open(settings=settings) as plane:
        space = plane.space("alice")
        space.retain("I moved to Lisbon last week")
        return space.recall(QUESTION).text


def test_a_model_of_ones_own_may_have_a_calibration(own_model, tmp_path):
    """
    The file in the model's folder that bears the model's id decides; without it the weights for any model do.
    """
    model_id = LocalEmbedder(model_in(own_model)).model_id
    assert "Lisbon" in recalled(own_model, tmp_path / "before")
    fitted = msgspec.structs.replace(calibration_of("unknown"), need=NEVER)
    (own_model / f"{model_id}.json").write_bytes(msgspec.json.encode(fitted))

    assert recalled(own_model, tmp_path / "after") == ""


def test_the_calibration_of_another_model_is_not_used(tmp_path):
    """
    Weights fitted for one model mean nothing to another, even if its file lies in the same folder.
    """
    fitted = msgspec.structs.replace(calibration_of("unknown"), need=NEVER)
    (tmp_path / "mine-0123456789ab.json").write_bytes(msgspec.json.encode(fitted))

    assert calibration_of("mine-0123456789ab", tmp_path) == fitted
    assert calibration_of("mine-ba9876543210", tmp_path) == calibration_of("unknown") != fitted
    assert calibration_of(None, tmp_path) == calibration_of(None) != fitted


def test_an_embedder_around_the_model_keeps_its_calibration(own_model, tmp_path):
    """
    What is evaluated with a cache of vectors is what an agent gets without one.
    """
    with CachedEmbedder(LocalEmbedder(model_in(own_model)), tmp_path) as cached:
        assert folder_of(Stopwatch(cached)) == own_model


@pytest.mark.parametrize("content", [b"", b"{}", b'{"need": 1}'])
def test_a_file_that_is_no_calibration_is_named(tmp_path, content):
    """
    A damaged file is an error in the settings, not a silent fallback.
    """
    (tmp_path / "mine-1.json").write_bytes(content)

    with pytest.raises(SettingsInvalid, match=r"mine-1\.json is not a calibration"):
        calibration_of("mine-1", tmp_path)


def packed(*numbers: float) -> str:
    return b64encode(np.array(numbers, np.float16).tobytes()).decode()


def a_calibration() -> dict[str, Any]:
    """A file for vectors of three numbers, with a hidden layer of two."""
    direction = {"weights": packed(1, 0, 0), "bias": 0.5}
    return {
        **msgspec.to_builtins(calibration_of("unknown")),
        "personal": {"hidden": packed(*range(8)), "output": packed(1, -1), "dimension": 3},
        "instructions": dict.fromkeys(("general", "turn", "instruction", "foreign"), direction),
    }


@pytest.mark.parametrize(
    ("place", "value", "said"),
    [
        ("personal.hidden", packed(*range(7)), "hidden"),
        ("personal.hidden", b64encode(bytes(15)).decode(), "hidden"),
        ("personal.hidden", packed(*range(7), np.nan), "hidden"),
        ("personal.hidden", packed(*range(12)), "output"),
        ("personal.hidden", "", "hidden"),
        ("personal.output", packed(1), "output"),
        ("personal.output", packed(1, 2, 3), "output"),
        ("personal.output", packed(1, np.inf), "output"),
        ("personal.dimension", -1, "dimension"),
        ("personal.dimension", 0, "dimension"),
        ("instructions.general.weights", b64encode(bytes(3)).decode(), "weights"),
        ("instructions.turn.weights", packed(1, np.nan, 2), "weights"),
        ("likely_min", 0, "likely_min"),
        ("likely_min", -0.5, "likely_min"),
        ("likely_min", 1.5, "likely_min"),
        ("likely_min", 0.01, "likely_min"),
        ("maybe_min", 0, "maybe_min"),
        ("maybe_min", -0.5, "maybe_min"),
    ],
)
def test_wrong_numbers_in_a_calibration_are_named(tmp_path, place, value, said):
    """
    The file is checked when it is read: a recall would fail later, without saying why.
    """
    (tmp_path / "mine-1.json").write_bytes(msgspec.json.encode(a_calibration()))
    read = calibration_of("mine-1", tmp_path)
    assert read.personal is not None
    assert read.personal(np.ones(3, np.float32)) != 0.0
    wrong = a_calibration()
    *parents, name = place.split(".")
    part = wrong
    for parent in parents:
        part[parent] = dict(part[parent])
        part = part[parent]
    part[name] = value
    (tmp_path / "mine-2.json").write_bytes(msgspec.json.encode(wrong))

    with pytest.raises(SettingsInvalid, match=rf"mine-2\.json is not a calibration: .*{said}") as caught:
        calibration_of("mine-2", tmp_path)
    assert ".".join(parents) in str(caught.value)


def test_every_calibration_that_ships_can_be_read():
    """
    One for the bundled model, one for any other, one for words alone; what may help begins below what is likely to.
    """
    shipped = _shipped()

    assert {"any-model", "words-only"} < set(shipped)
    assert calibration_of(LocalEmbedder().model_id) is not calibration_of("unknown")
    for calibration in shipped.values():
        assert 0 < calibration.maybe_min < calibration.likely_min < 1
        assert [calibration.helps(need) for need in (0.0, calibration.maybe_min, calibration.likely_min)] == [
            "unlikely",
            "maybe",
            "likely",
        ]


def test_a_vector_of_another_dimension_says_nothing():
    personal = calibration_of(LocalEmbedder().model_id).personal

    assert personal is not None
    assert personal(np.ones(personal.dimension, np.float32)) != 0.0
    for dimension in (0, 1, personal.dimension + 1):
        assert personal(np.ones(dimension, np.float32)) == 0.0


@given(
    st.dictionaries(st.text(max_size=3), st.floats(-1e9, 1e9), max_size=5),
    st.dictionaries(st.text(max_size=3), st.floats(-1e9, 1e9), max_size=5),
    st.floats(-1e9, 1e9),
)
def test_a_probability_is_one_whatever_the_signals(weights, signals, bias):
    assert 0.0 < Logistic(bias, weights)(signals) < 1.0


@given(st.text(max_size=200))
def test_any_wording_has_a_value(text):
    assert np.isfinite(wording()(text))
