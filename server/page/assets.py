"""The files that pages load: own ones and vendored ones, each under a URL that names its content.

The style sheets are one file, in the order of their names. Everything is read once, at the start.
"""

import gzip
import hashlib
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


class Asset(NamedTuple):
    """A file as browsers get it."""

    url: str
    content: bytes
    compressed: bytes
    media_type: str


@cache
def assets() -> dict[str, Asset]:
    """Every asset by name: `page.css`, and each script and image by its file's name."""
    styles = b"\n".join(path.read_bytes() for path in sorted((STATIC / "css").glob("*.css")))
    made = [_asset("page.css", styles)]
    for folder in ("js", "vendor", "img"):
        made += [_asset(path.name, path.read_bytes()) for path in _served(STATIC / folder)]
    return dict(zip((name for name, _ in made), (asset for _, asset in made), strict=True))


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


def _asset(name: str, content: bytes) -> tuple[str, Asset]:
    stem, _, suffix = name.rpartition(".")
    url = f"{PREFIX}{stem}.{hashlib.sha256(content).hexdigest()[:16]}.{suffix}"
    compressed = gzip.compress(content, 9, mtime=0)
    return name, Asset(url, content, compressed, _TYPES[f".{suffix}"])
