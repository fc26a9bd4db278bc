"""What all formats share."""

import pytest

from comply.model.conversation import (
    BadRequest,
    ModelRequest,
    RequestPart,
    Text,
    Turn,
    parsed,
    size,
    text_of,
    words,
)


class Said(RequestPart):
    content: Text = []


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ('{"content": "a b"}', "a b"),
        ('{"content": [{"type": "text", "text": "a"}, {"type": "image"}, {"text": "b"}]}', "a\nb"),
        ('{"content": null}', ""),
        ("{}", ""),
    ],
)
def test_text_comes_in_several_forms(body: str, text: str) -> None:
    assert text_of(parsed(Said, body.encode()).content) == text


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ('{"content": 4}', "content: should be a string or a list"),
        ('{"content": [4]}', "content.0: should be an object"),
        ("[]", "the body: should be an object"),
        ("{", "the body: is not JSON"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(body: str, problem: str) -> None:
    with pytest.raises(BadRequest) as raised:
        parsed(Said, body.encode())
    assert str(raised.value).startswith(problem)


@pytest.mark.parametrize("text", ["", "a", "a b", " a  b "])
def test_the_pieces_of_a_text_are_the_text(text: str) -> None:
    assert "".join(words(text)) == text
    assert all(words("a b c"))


def test_sizes_are_never_none() -> None:
    assert (size(""), size("a b")) == (1, 3)
    assert ModelRequest("m", (Turn("user", "a b"), Turn("assistant", ""))).size == 4
