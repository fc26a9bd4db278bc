"""What the options of `cacp probe` are read as."""

import pytest

from cli.probe_options import parsed_header, parsed_value


def test_headers_and_values() -> None:
    assert parsed_header("X-A: b: c ") == ("X-A", "b: c")
    assert parsed_value("a=b=c") == ("a", "b=c")
    for text in ("", "X", ": a", "X A: b", "X: a\nb", "X: é"):
        with pytest.raises(ValueError, match="a header is like"):
            parsed_header(text)
