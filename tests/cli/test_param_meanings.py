"""The meanings are one line each."""

from cli.param_meanings import MEANINGS


def test_a_meaning_is_one_short_line() -> None:
    for name, meaning in MEANINGS.items():
        assert meaning == meaning.strip(), name
        assert "\n" not in meaning
        assert len(meaning) <= 90, name
