"""A program in the place of npx, for tests that are not about what it runs."""

import sys
from pathlib import Path

import pytest

PROGRAM = """#!{python} -I
import json, pathlib, sys
for name, api in json.load(open("redocly.yaml"))["apis"].items():
    names = json.load(open(api["root"]))["components"]["schemas"]
    text = "".join(f"export type {{name}} = unknown;\\n" for name in names)
    if name.startswith("broken"):
        sys.exit("    throw new Error\\nError: it is broken\\n    at line 1")
    pathlib.Path(api["x-openapi-ts"]["output"]).write_text(text)
with open({calls!r}, "a") as calls:
    print(json.dumps(sys.argv[1:]), file=calls)
"""


def stand_in(folder: Path, monkeypatch: pytest.MonkeyPatch, program: str = PROGRAM) -> Path:
    """Put the program first on PATH. The file to which it adds its arguments, as JSON lines."""
    path, calls = folder / "bin" / "npx", folder / "npx-calls"
    path.parent.mkdir()
    calls.touch()
    path.write_text(program.format(python=sys.executable, calls=str(calls)))
    path.chmod(0o755)
    monkeypatch.setenv("PATH", str(path.parent), prepend=":")
    return calls
