"""HTTP requests and answers as they travel, and as people repeat them."""

import json
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, quote

Headers = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class WireRequest:
    """A request. `path` is percent-encoded, `query` is without its question mark."""

    method: str
    path: str
    query: str = ""
    headers: Headers = ()
    body: bytes | None = None

    @property
    def target(self) -> str:
        return f"{self.path}?{self.query}" if self.query else self.path

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """The names and values of the query."""
        return parse_qsl(self.query, keep_blank_values=True)

    def size(self) -> tuple[int, str]:
        """What is less for a simpler request."""
        text = f"{self.target} {self.headers} {self.body!r}"
        return len(text), text


@dataclass(frozen=True, slots=True)
class WireAnswer:
    """What came back."""

    status: int
    headers: Headers = ()
    body: bytes = b""


def encoded_path(text: str) -> str:
    """A path as it travels: what no path holds is percent-encoded, and what is encoded stays.

    >>> encoded_path("/ключ/a b%20c")
    '/%D0%BA%D0%BB%D1%8E%D1%87/a%20b%20c'
    """
    return quote(text.encode(errors="surrogatepass"), safe="/%:@!$&'()*+,;=-._~")


def header_of(headers: Headers, name: str) -> str | None:
    """The value of a header, of all of that name joined; None if there is none."""
    values = [value for given, value in headers if given.lower() == name.lower()]
    return ", ".join(values) if values else None


def media_of(headers: Headers) -> str:
    """The media type without its parameters, in lower case; empty if there is none."""
    return (header_of(headers, "content-type") or "").partition(";")[0].strip().lower()


def is_json(media: str) -> bool:
    kind = media.partition(";")[0].strip()
    return kind == "application/json" or kind.endswith("+json")


def fits_media(media: str, ranges: Iterable[str]) -> str | None:
    """The first of some media types or ranges (`text/*`) that a media type is in."""
    for given in ranges:
        plain = given.partition(";")[0].strip()
        main, _, sub = plain.partition("/")
        if plain in (media, "*/*") or (sub == "*" and media.startswith(f"{main}/")):
            return given
    return None


def json_of(body: bytes) -> Any:
    """The JSON of a body. Raises ValueError with one line for what is none."""
    try:
        return json.loads(body, parse_constant=_no_number)
    except UnicodeDecodeError:
        raise ValueError("it is not UTF-8") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"{error.msg} at character {error.pos}") from None
    except RecursionError:
        raise ValueError("it is nested too deep") from None


def _no_number(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def curl(request: WireRequest, base_url: str, hidden: Iterable[str] = ()) -> str:
    """The command line that repeats a request. The values of `hidden` headers are left out of it,
    for variables of the shell.

    >>> curl(WireRequest("POST", "/a", "b=1", (("X-C", "d"),), b"{}"), "http://h", ["X-C"])
    'curl -X POST -H "X-C: $X_C" -H Content-Type: --data-raw \'{}\' \'http://h/a?b=1\''
    """
    secret = {name.lower() for name in hidden}
    words = ["curl", "--head"] if request.method == "HEAD" else ["curl", "-X", request.method]
    for name, value in request.headers:
        if name.lower() in secret:
            words += ["-H", f'"{name}: ${_variable(name)}"']
        else:
            words += ["-H", shlex.quote(f"{name}: {value}" if value else f"{name};")]
    before = ""
    if request.body is not None:
        if header_of(request.headers, "content-type") is None:
            words += ["-H", "Content-Type:"]
        text = _plain_text(request.body)
        if text is None:
            before = f"printf '%b' '{''.join(f'{chr(92)}0{byte:03o}' for byte in request.body)}' | "
            words += ["--data-binary", "@-"]
        else:
            words += ["--data-raw", shlex.quote(text)]
    return before + " ".join([*words, shlex.quote(base_url + request.target)])


def _variable(name: str) -> str:
    return "".join(c if c.isalnum() else "_" for c in name).upper()


def _plain_text(body: bytes) -> str | None:
    """The text of a body if a terminal shows it as it is."""
    try:
        text = body.decode()
    except UnicodeDecodeError:
        return None
    return text if text.isprintable() else None
