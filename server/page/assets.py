"""The files that pages load: own ones and vendored ones, each under a URL that names its content.

The style sheets are one file, in the order of their names. Everything is read once, at the start.
Own files leave their comments and indentation here.
"""

import gzip
import hashlib
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response

STATIC = Path(__file__).parent / "static"
PREFIX = "/ui/assets/"
FOREVER = "public, max-age=31536000, immutable"
_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_CSS_COMMENT = re.compile(rb"/\*.*?\*/", re.DOTALL)
_CSS_SPACE = re.compile(rb" *([{};,]|(?<=[a-z]):(?= )) +")
_JS_COMMENT = re.compile(rb"^\s*//.*$", re.MULTILINE)


class Asset(NamedTuple):
    """A file as browsers get it."""

    url: str
    content: bytes
    compressed: bytes
    media_type: str


@cache
def assets() -> dict[str, Asset]:
    """Every asset by name: `page.css`, and each script and image by its file's name."""
    styles = b"\n".join(map(_own, sorted((STATIC / "css").glob("*.css"))))
    files = {"page.css": styles}
    for folder in ("js", "graph", "img"):
        files |= {path.name: _own(path) for path in _served(STATIC / folder)}
    files |= {path.name: path.read_bytes() for path in _served(STATIC / "vendor")}
    return {name: _asset(name, content) for name, content in files.items()}


def asset_url(name: str) -> str:
    """The URL of an asset."""
    return assets()[name].url


async def serve(request: Request) -> Response:
    """An asset; it never changes under its URL."""
    asset = _by_url().get(request.url.path)
    if asset is None:
        return Response("There is no such asset", 404, media_type="text/plain")
    headers = {"cache-control": FOREVER, "vary": "accept-encoding"}
    if "gzip" not in request.headers.get("accept-encoding", ""):
        return Response(asset.content, headers=headers, media_type=asset.media_type)
    headers["content-encoding"] = "gzip"
    return Response(asset.compressed, headers=headers, media_type=asset.media_type)


@cache
def _by_url() -> dict[str, Asset]:
    return {asset.url: asset for asset in assets().values()}


def _served(folder: Path) -> Iterable[Path]:
    return sorted(path for path in folder.glob("*") if path.suffix in _TYPES)


def _own(path: Path) -> bytes:
    """A file of this project as browsers need it. A comment of a script has lines of its own."""
    content = path.read_bytes()
    if path.suffix == ".css":
        content = _CSS_COMMENT.sub(b"", content)
        content = _CSS_SPACE.sub(rb"\1", content)
    elif path.suffix == ".js":
        content = _JS_COMMENT.sub(b"", content)
    return b"\n".join(line for raw in content.splitlines() if (line := raw.strip()))


def _asset(name: str, content: bytes) -> Asset:
    stem, _, suffix = name.rpartition(".")
    url = f"{PREFIX}{stem}.{hashlib.sha256(content).hexdigest()[:16]}.{suffix}"
    compressed = gzip.compress(content, 9, mtime=0)
    return Asset(url, content, compressed, _TYPES[f".{suffix}"])
