"""What pages load comes from the node alone, is small, and says where it is from."""

import gzip
import hashlib
import json
from typing import Any

import pytest

from server.page.assets import FOREVER, STATIC, assets
from tests.support.node import Node

VENDORED = json.loads((STATIC / "vendor" / "VENDORED.json").read_text())
BEFORE_A_GRAPH = ("page.css", "page.js", "htmx.min.js", "mark.svg")
KB = 1000


@pytest.mark.parametrize("entry", VENDORED, ids=lambda entry: entry["file"])
def test_a_vendored_file_is_what_its_entry_says(entry: dict[str, Any]) -> None:
    content = (STATIC / "vendor" / entry["file"]).read_bytes()
    assert hashlib.sha256(content).hexdigest() == entry["sha256"]
    assert (STATIC / "vendor" / entry["licenceFile"]).read_text().strip()
    assert all(entry[name] for name in ("version", "package", "licence"))


def test_every_vendored_script_has_an_entry() -> None:
    named = {entry["file"] for entry in VENDORED}
    assert {path.name for path in (STATIC / "vendor").glob("*.js")} == named


def test_the_assets_are_small() -> None:
    """Under 300 kB in all, and under 60 kB before a graph is opened; not compressed."""
    sizes = {name: len(asset.content) for name, asset in assets().items()}
    assert sum(sizes.values()) < 300 * KB, sizes
    assert sum(sizes[name] for name in BEFORE_A_GRAPH) < 60 * KB, sizes


def test_an_asset_never_changes_under_its_url(node: Node) -> None:
    for asset in assets().values():
        response = node.http.get(asset.url, headers={"accept-encoding": "identity"})
        assert response.content == asset.content
        assert response.headers["cache-control"] == FOREVER
        assert response.headers["content-type"].startswith(asset.media_type)


def test_an_asset_is_compressed_for_who_takes_it(node: Node) -> None:
    asset = assets()["page.css"]
    response = node.http.get(asset.url, headers={"accept-encoding": "gzip"})
    assert response.headers["content-encoding"] == "gzip"
    assert response.content == asset.content
    assert gzip.decompress(asset.compressed) == asset.content


@pytest.mark.parametrize(
    "path", ["page.css", "page.0000000000000000.css", "..%2F..%2Fview.py", "VENDORED.json"]
)
def test_nothing_else_is_an_asset(node: Node, path: str) -> None:
    assert node.http.get(f"/ui/assets/{path}").status_code == 404


def test_no_file_names_another_origin() -> None:
    for name in ("page.css", "page.js"):
        assert b"//" not in assets()[name].content.replace(b"// ", b"")
