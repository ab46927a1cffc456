"""`memplane eval` as a person meets it."""

import json

import msgspec
import pytest

from eval_samples import CASES, write_samples

SEARCHING = ["locomo", "longmemeval", "multihop", "conflicts"]


@pytest.fixture
def measured(cli, tmp_path):
    folder = write_samples(tmp_path / "samples")
    cli.wiring = msgspec.structs.replace(
        cli.wiring, environment={**cli.wiring.environment, "MEMPLANE_EVAL_DATA": str(folder)}
    )
    return cli


@pytest.mark.parametrize("subject", SEARCHING)
def test_searches_are_shown_beside_baselines(measured, subject):
    """
    A table with a column for each system, and the same as JSON; the user's own memory is not touched.
    """
    shown = measured("eval", subject, "--no-embeddings", "--compare", "bm25")
    told = measured("eval", subject, "--no-embeddings", "--compare", "bm25", "--json")

    assert (shown.code, shown.err) == (0, "")
    assert "bm25" in shown.out
    assert {tuple(report["systems"]) for report in told.json["reports"]} == {("memplane", "bm25")}
    assert not measured.data.exists()


@pytest.mark.parametrize("subject", ["msc", "temporal"])
def test_understanding_is_shown(measured, subject):
    """
    Without a search there is nothing to compare, and the option is not there.
    """
    assert measured("eval", subject).code == 0
    assert measured("eval", subject, "--compare", "bm25").code == 2


def test_a_file_may_be_named(measured, tmp_path):
    """
    Then that one is measured, whatever its name.
    """
    path = tmp_path / "mine.json"
    path.write_text((tmp_path / "samples" / "longmemeval-oracle-dev.json").read_text())

    told = measured("eval", "longmemeval", str(path), "--no-embeddings", "--json").json
    assert [report["file"] for report in told["reports"]] == ["mine.json"]


def test_what_is_returned_is_measured_on_several_files(measured, tmp_path):
    """
    A file of cases and a data set; the LoCoMo file of the usual folder fills the large space.
    """
    cases = tmp_path / "cases.json"
    cases.write_text(json.dumps(CASES))
    locomo = tmp_path / "samples" / "locomo-dev.json.gz"

    done = measured("eval", "returned", str(cases), str(locomo), "--no-embeddings", "--json")
    groups = [{row["group"] for row in report["rows"]} for report in done.json["reports"]]
    assert "stored, space of 1,000" in groups[0]
    assert "budget 1,200" in groups[1]


def test_vectors_are_cached(measured, tmp_path):
    """
    With --cache, the second run finds the vectors of the first.
    """
    arguments = ["eval", "longmemeval", "--cache", str(tmp_path / "cache"), "--compare", "dense", "--json"]
    first = measured(*arguments).json
    second = measured(*arguments).json

    def shares(document):
        return [row for row in document["reports"][0]["rows"] if not row["unit"]]

    assert shares(first) == shares(second)
    assert (tmp_path / "cache" / "vectors.db").is_file()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["locomo", "nowhere.json"], "is not there"),
        (["locomo", "--compare", "bm26"], "no baseline"),
        (["locomo", "--compare", "dense", "--no-embeddings"], "needs embeddings"),
    ],
)
def test_what_can_be_mended_is_1(measured, arguments, words):
    """
    One sentence, nothing on stdout, and with --json the error as a document.
    """
    done = measured("eval", *arguments, "--json")

    assert (done.code, done.out) == (1, "")
    assert words in json.loads(done.err.splitlines()[1])["error"]["message"]


def test_absent_data_says_what_to_do(cli, tmp_path):
    """
    Which file, which folder, which variable, and where people get it.
    """
    cli.wiring = msgspec.structs.replace(cli.wiring, environment={"MEMPLANE_EVAL_DATA": str(tmp_path)})
    done = cli("eval", "locomo")

    assert (done.code, done.out) == (1, "")
    assert "locomo-dev.json.gz" in done.err
    assert "snap-research/locomo" in done.err
