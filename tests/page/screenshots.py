"""`make screenshots`: each view on a wide screen, on a phone and in the dark.

    python -m tests.page.screenshots FOLDER

What they show is `cacp demo`'s feature, gone on with: the usual content of the page's tests.
"""

import sys
import tempfile
from pathlib import Path
from typing import Literal

from server.page.views import VIEWS
from tests.page.ground import Words, told
from tests.support.chromium import Visitor, launched, shown_in
from tests.support.node import Node

SIZES: dict[str, tuple[Literal["light", "dark"], int, int]] = {
    "wide": ("light", 1280, 800),
    "phone": ("light", 390, 844),
    "dark": ("dark", 1280, 800),
}
BEST = {"attention": "wide", "feature": "wide", "matrix": "dark"}
"""Those of the README, in docs/images."""
IMAGES = Path(__file__).parents[2] / "docs" / "images"


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    IMAGES.mkdir(exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as place,
        launched() as browser,
        Node(Path(place), unlimited_senders=True) as node,
        Visitor(browser, node.url) as visitor,
    ):
        ground = told(node, Words())
        for view in VIEWS.values():
            path = ground.path(view.path)
            assert path is not None, view.path
            page = visitor.open(path)
            for name, (scheme, width, height) in SIZES.items():
                shown_in(page, scheme, width=width, height=height)
                file = folder / f"{view.name}-{name}.png"
                page.screenshot(path=file, full_page=name == "phone")
                if BEST.get(view.name) == name:
                    (IMAGES / f"{view.name}.png").write_bytes(file.read_bytes())
            print(view.name)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
