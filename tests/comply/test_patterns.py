"""Regexes of ECMAScript. What is said of them here is what `new RegExp` says (ECMA-262, §22.2)."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comply.files import SUITES
from comply.patterns import PatternError, compiled, occurs
from comply.template import literal

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


@pytest.mark.parametrize(
    ("pattern", "text", "there"),
    [
        ("^a$", "a", True),
        ("^a$", "a\n", False),
        (r"^\d+$", "12", True),
        (r"^\d+$", "١٢", False),
        (r"^\w$", "é", False),
        (r"^\s$", "\ufeff", True),
        (r"^\s$", "\x85", False),
        (r"^[\S]$", "\x85", True),
        (r"^[^\S\n]$", "\u2028", True),
        ("^.$", "\u2028", False),
        ("^[^]$", "\n", True),
        ("[]", "", False),
        ("^[]]$", "]", False),
        ("^[[a]+$", "[a", True),
        ("^[a&&b]+$", "&ab", True),
        (r"^[\d-x]+$", "1-x", True),
        ("^a{,2}$", "a{,2}", True),
        ("^}]{$", "}]{", True),
        (r"^(?<year>\d{4})-\k<year>$", "2026-2026", True),
        (r"^(?<year>\d{4})-\k<year>$", "2026-2027", False),
        (r"^(?:(a)|b)\1$", "b", True),
        (r"^\1(a)$", "a", True),
        (r"^(?<=^)a(?<!b)$", "a", True),
        (r"(?<=\$\d+\.)\d\d", "$10.53", True),
        (r"^\x41\u0042\cJ\0$", "AB\n\0", True),
        (r"^\ud83d\ude00$", "😀", True),
        (r"^[\b]$", "\b", True),
        (r"^\/\-\.$", "/-.", True),
        (r"^(?:/|[A-Za-z]:\\).+x\.txt$", "/a/x.txt", True),
        ("#x ~ &&", "#x ~ &&", True),
        ("^a{2}{$", "aa{", True),
        ("", "anything", True),
    ],
)
def test_what_is_found(pattern: str, text: str, there: bool) -> None:
    assert occurs(pattern, text) is there


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("(", "a group is not closed"),
        (")", "a closing bracket without"),
        ("[a", "a class is not closed"),
        ("*", "nothing to repeat, at 0"),
        ("a**", "nothing to repeat"),
        ("a++", "nothing to repeat"),
        ("^*", "nothing to repeat"),
        ("a{3,2}", "whose minimum exceeds its maximum"),
        ("[b-a]", "whose start is after its end"),
        ("(?P<n>a)", "an unknown kind of group"),
        ("(?i)a", "an unknown kind of group"),
        ("(?>a)", "an unknown kind of group"),
        ("(?<1>a)", "can't be called '1'"),
        (r"\Aa\Z", r"\\A is not an escape"),
        (r"\p{L}", r"\\p is not an escape"),
        (r"\k<a>(?<b>)", "the pattern has no group"),
        (r"(a)\2", "the pattern has no group"),
        (r"\x4", "2 hexadecimal digits"),
        ("a\\", "a backslash at the end"),
        ("(a{1000}){1000}", "repetitions of more than 100000 characters"),
        ("(" * 5000 + ")" * 5000, "its groups are nested too deep"),
        ("a{99999999999999999999}", "repetitions of more than"),
    ],
)
def test_what_is_no_regex_says_why(pattern: str, why: str) -> None:
    with pytest.raises(PatternError, match=why):
        compiled(pattern)


def test_a_search_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("comply.patterns.SECONDS", 0.05)
    with pytest.raises(PatternError, match=r"takes more than 0\.05 s on 5001 characters"):
        occurs("^(a|aa)+$", "a" * 5000 + "!")


def test_no_shipped_regex_begins_to_look_ahead_anew_at_each_character() -> None:
    unanchored = [path.name for path in SUITES.rglob("*.jsont") if '"(?=' in path.read_text()]
    assert unanchored == []


@given(TEXT, TEXT)
def test_a_literal_finds_only_itself(text: str, other: str) -> None:
    assert occurs(str(literal(text)), text)
    assert occurs(str(literal(text)), other) is (text == other)


@given(st.text("ab1.-^$|()[]{}*+?\\,=!<:dbwsk", max_size=10))
def test_any_pattern_is_read_or_refused_in_words(pattern: str) -> None:
    with suppress(PatternError):
        occurs(pattern, "ab1")
