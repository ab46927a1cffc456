"""Tokens are estimated without a tokenizer: the mean of current ones."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memplane.recall.tokens import tokens_of


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        ("   \t ", 0),
        ("tea", 1),
        ("tea, please!", 4),
        ("2026", 3),
        ("one\ntwo\n\n\nthree", 5),
        ("上海", 3),
        ("🎉", 2),
        ("café", 2),
    ],
)
def test_small_texts(text, tokens):
    """An English word is one token, spaces none, a run of line ends one; some tokenizers have one for each digit."""
    assert tokens_of(text) == tokens


@pytest.mark.parametrize(
    ("text", "real"),
    [
        (
            (
                "- 2023-05-08 Caroline: I went to a support group yesterday and it was so powerful.\n"
                "- 2023-06-09 Melanie: Thanks! We took the kids camping at the lake, they loved the campfire.\n"
                "- [preference] Prefers tea with milk, no sugar (2024-02-11)\n"
                "- [instruction] Never push to main without a review (2024-03-01)"
            ),
            98.3,
        ),
        (
            (
                "- 2024-02-11 user: Ich bin Bauingenieurin und rechne in einem Büro den ganzen Tag Brücken durch.\n"
                "- 2024-03-01 user: Milch und Sahne gehen bei mir leider gar nicht, das gibt Bauchschmerzen."
            ),
            63.3,
        ),
        (
            (
                "- 2024-02-11 user: Я работаю медсестрой в больнице и часто дежурю по ночам.\n"
                "- 2024-03-01 user: Наша дочь любит рисовать и ходит в музыкальную школу."
            ),
            61.5,
        ),
        (
            "- 2024-02-11 user: 我在医院当护士, 经常上夜班。\n- 2024-03-01 user: 女儿喜欢画画, 每周六去音乐学校。",
            51.0,
        ),
    ],
)
def test_within_a_tenth_of_the_mean_of_six_tokenizers(text, real):
    """The mean of o200k, Llama 3, tekken, Gemma 3, Qwen 3 and DeepSeek V3; longer texts are nearer to it."""
    assert tokens_of(text) == pytest.approx(real, rel=0.1)


@given(st.text(), st.text())
def test_lines_add_up(left, right):
    """What render relies on: lines counted one by one cost what they cost together; empty lines between them may cost less."""
    together, apart = tokens_of(f"{left}\n{right}"), tokens_of(f"{left}\n") + tokens_of(right)

    assert together <= apart
    if not left.endswith("\n") and not right.startswith("\n"):
        assert together == apart


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_no_text_is_free(text):
    """Whatever is not blank costs something, and at most three for a character."""
    count = tokens_of(text)
    assert (count > 0) == bool(text.strip(" \t\r"))
    assert count <= 3 * len(text)
