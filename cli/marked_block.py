"""A block of lines between two markers in a text of a person, such as AGENTS.md.

Pure: text in, text out. Around the block the text stays as it is.
"""

BEGIN = "<!-- cacp: begin -->"
END = "<!-- cacp: end -->"


def with_block(text: str | None, lines: str) -> str:
    """The text with the block at its end, or in the place of the block that it has. Raises
    ValueError when the markers don't stand in it as a pair.

    >>> with_block("# Mine\\n", "ours\\n")
    '# Mine\\n\\n<!-- cacp: begin -->\\nours\\n<!-- cacp: end -->\\n'
    """
    block = f"{BEGIN}\n{lines}{END}\n"
    text = text or ""
    place = _place(text)
    if place is not None:
        return text[: place[0]] + block + text[place[1] :]
    if not text:
        return block
    return f"{text}{'' if text.endswith(chr(10)) else chr(10)}\n{block}"


def without_block(text: str) -> str:
    """The text without the block and the empty line before it. Raises ValueError as `with_block`.

    >>> without_block(with_block("# Mine\\n", "ours\\n"))
    '# Mine\\n'
    """
    place = _place(text)
    if place is None:
        return text
    start, end = place
    if text[:start].endswith("\n\n"):
        start -= 1
    return text[:start] + text[end:]


def _place(text: str) -> tuple[int, int] | None:
    """Where the block begins, and where it ends with its last line; None when there is none."""
    start, end = text.find(BEGIN), text.find(END)
    if start == end == -1:
        return None
    if text.count(BEGIN) != 1 or text.count(END) != 1 or end < start:
        raise ValueError(f"should have {BEGIN} and {END} once each, in this order, or neither")
    end += len(END)
    return start, end + 1 if text[end : end + 1] == "\n" else end
