"""The pages of docs/ that are generated from the code, and the version in the deployment files.

`make docs` writes them; a test fails when one of them is not up to date.
"""

import json
import re
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import typer

from cli import contract_page, handoff_page
from cli.method_help import INDEX
from cli.method_index import index
from cli.param_meanings import MEANINGS
from server.mcp_tools import catalog
from server.methods import METHODS, openrpc
from server.settings import Settings

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
VERSIONED = (
    "compose.yaml",
    "deploy/README.md",
    "deploy/compose.mesh.yaml",
    "deploy/kubernetes.yaml",
)
"""Files that name an image, or show a response, with the version of this software."""
Json = dict[str, Any]
ABOUT_COMMANDS = """Every command that reads takes `--json`. The names in it are in camelCase,
except in what another specification defines: ACP messages, ADP listings, the reports of
`cacp wire`, `cacp thread` and `cacp comply`. `cacp call` prints results as the node gives them.
Errors are one line on stderr.

Which node a command calls: `--url`, else `CACP_URL`, else `CACP_PORT` on this machine (and
`CACP_HOST`), else the node that runs on `CACP_DB` or `data/cacp.db`, else `http://127.0.0.1:8080`.
"""


def pages() -> dict[str, str]:
    """The text of each page, by its file's name."""
    return {
        "cli.md": _page(_cli()),
        "settings.md": _page(_settings()),
        "methods.md": _page(_methods()),
        "contracts.md": _page(contract_page.page()),
        "mcp.md": _mcp(),
        "handoffs.md": _page(handoff_page.page()),
    }


def method_index() -> str:
    """The text of `cli/methods.json`."""
    document = json.loads(openrpc.document())
    access = {name: method.access for name, method in METHODS.items()}
    return index(document, access, catalog.ABOUT | MEANINGS)


def write() -> None:
    for name, text in pages().items():
        (DOCS / name).write_text(text)
    INDEX.write_text(method_index())
    for name in VERSIONED:
        file = ROOT / name
        file.write_text(with_version(file.read_text(), version("cacp-server")))


def with_version(text: str, version: str) -> str:
    """A deployment file with this version in its image tags and its example of `/health`.

    >>> with_version("image: cacp-server:0.1.0", "0.2.0")
    'image: cacp-server:0.2.0'
    """
    number = r"\d+(?:\.\w+)*"
    return re.sub(rf'(cacp-server:|"version":"){number}', rf"\g<1>{version}", text)


# --- the command --------------------------------------------------------------------------------


def _cli() -> Iterator[str]:
    from cli.main import app

    root = typer.main.get_command(app)
    yield "# The `cacp` command\n"
    yield f"{_split(root.help or '')[0].partition('Start here')[0].strip()}\n"
    yield f"{root.epilog}\n"
    yield f"{ABOUT_COMMANDS}\n"
    yield from _options(root)
    yield from _commands(root, "cacp")


def _commands(group: Any, path: str) -> Iterator[str]:
    for name, command in group.commands.items():
        full = f"{path} {name}"
        yield f"{'#' * (len(full.split()))} `{full}`\n"
        text, examples = _split(command.help or "")
        yield f"{text}\n"
        if hasattr(command, "commands"):
            yield from _commands(command, full)
            continue
        yield f"```\n{full} {_usage(command)}\n```\n"
        yield from _options(command)
        if examples:
            yield f"```sh\n{examples}\n```\n"


def _split(help: str) -> tuple[str, str]:
    """A command's help text, and its examples as lines of a shell."""
    text, _, examples = re.sub(r"\x08\n?|\\b\n", "", help).partition("Example")
    examples = re.sub(r"^s?:\s*", "", examples)
    lines = [line.removeprefix("  ") for line in examples.splitlines()]
    return "\n".join(line.strip() for line in text.strip().splitlines()), "\n".join(lines).strip()


def _usage(command: Any) -> str:
    words = ["[OPTIONS]"]
    for param in command.params:
        if param.param_type_name == "argument":
            name = (param.metavar or param.name.upper()).strip("[]").removesuffix("]...")
            words.append(name if param.required else f"[{name}]")
    return " ".join(words)


def _options(command: Any) -> Iterator[str]:
    rows = []
    for param in command.params:
        if param.name == "help":
            continue
        if param.param_type_name == "argument":
            names = (param.metavar or param.name.upper()).strip("[]").removesuffix("]...")
        else:
            names = "`, `".join(param.opts)
        about = param.help or ""
        if getattr(param, "envvar", None):
            about += f" `{param.envvar}`."
        if isinstance(param.default, str):
            about += f" `{param.default}` by default."
        rows.append((f"`{names}`", about))
    if rows:
        yield from _table(("", "what it is"), rows)


# --- the settings -------------------------------------------------------------------------------


def _settings() -> Iterator[str]:
    yield "# Settings\n"
    yield (
        "Options of `cacp serve` win over `CACP_*` variables, variables over the TOML file that\n"
        "`--config` or `CACP_CONFIG` names, and the file over the defaults. An empty variable\n"
        "counts as none. In the file a setting has its name in lower case: `port = 9000`.\n"
    )
    properties = Settings.model_json_schema()["properties"]
    rows = [
        (
            f"`CACP_{name.upper()}`",
            _type(properties[name]),
            _default(field.default),
            field.description or "",
        )
        for name, field in Settings.model_fields.items()
    ]
    yield from _table(("variable", "type", "default", "what it sets"), rows)


def _default(value: Any) -> str:
    shown = str(value).lower() if isinstance(value, bool) else value
    return f"`{shown}`" if str(value) not in ("None", "", "()") else ""


# --- the methods --------------------------------------------------------------------------------


def _methods() -> Iterator[str]:
    document = json.loads(openrpc.document())
    schemas = document["components"]["schemas"]
    yield "# Methods\n"
    yield (
        "JSON-RPC 2.0 over `POST /`, params by name. In params, and for `params` itself, `null`\n"
        "means absent; in results what is absent is left out. `GET /openrpc.json`,\n"
        "`rpc.discover` and `cacp openrpc` give the same as a document for programs. Who has the\n"
        "access that a method needs is in `server/domain/access.py`.\n"
    )
    errors = document["components"]["errors"].values()
    yield from _table(
        ("code", "meaning"), [(f"`{error['code']}`", error["message"]) for error in errors]
    )
    for method in document["methods"]:
        yield f"## `{method['name']}`\n"
        yield f"{method['summary']} Access: {METHODS[method['name']].access}.\n"
        params = [
            (
                f"`{param['name']}`",
                _type(param["schema"]) + ("" if param["required"] else ", optional"),
                _default(param["schema"].get("default")),
            )
            for param in method["params"]
        ]
        if params:
            yield from _table(("param", "type", "default"), params)
        yield from _result(method["result"]["schema"], schemas)
    yield "## Data types\n"
    shown_above = {method.params.__name__ for method in METHODS.values()}
    for name, schema in sorted(schemas.items()):
        if name not in shown_above and not name.endswith("Result") and "properties" in schema:
            yield f"### {name}\n"
            about = schema.get("description", "").split("\n\n")[0].replace("\n", " ")
            if about:
                yield f"{about}\n"
            yield from _members("member", schema)


def _result(schema: Json, schemas: Json) -> Iterator[str]:
    name = schema.get("$ref", "").rpartition("/")[2]
    if name.endswith("Result"):
        yield from _members("result", schemas[name])
    else:
        yield f"Result: {_type(schema)}.\n"


def _members(kind: str, schema: Json) -> Iterator[str]:
    required = schema.get("required", [])
    rows = [
        (f"`{name}`", _type(member) + ("" if name in required else ", optional"))
        for name, member in schema.get("properties", {}).items()
    ]
    if rows:
        yield from _table((kind, "type"), rows)


def _anchor(name: str) -> str:
    """The anchor of a type. Params and results stand with the first method that has them."""
    for method in METHODS.values():
        if name in (method.params.__name__, getattr(method.result, "__name__", None)):
            return method.name.lower().replace("/", "").replace(".", "")
    return name.lower()


def _type(schema: Json) -> str:
    """A JSON schema in a few words."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{_anchor(name)})"
    if "enum" in schema:
        return " \\| ".join(f"`{value}`" for value in schema["enum"])
    if "const" in schema:
        return f"`{schema['const']}`"
    if "anyOf" in schema or "oneOf" in schema:
        kinds = [_type(kind) for kind in schema.get("anyOf") or schema["oneOf"]]
        return " \\| ".join(kind for kind in dict.fromkeys(kinds) if kind != "null")
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    return str(schema.get("type", "any JSON"))


# --- the tools ----------------------------------------------------------------------------------


def _mcp() -> str:
    """The page docs/mcp.md with its tables renewed. The rest of it is written by hand."""
    rows = [
        (
            f"`{tool.name}`",
            tool.description,
            ", ".join(f"`{method}`" for method in tool.steps.values()),
        )
        for tool in catalog.TOOLS.values()
    ]
    resources = [
        (f"`{resource.uri}`", resource.about, f"`{resource.tool}`")
        for resource in catalog.RESOURCES
    ]
    page = (DOCS / "mcp.md").read_text()
    page = _renewed(page, "tools", _table(("tool", "what it does", "method"), rows))
    return _renewed(page, "resources", _table(("resource", "what it shows", "as"), resources))


def _renewed(page: str, name: str, parts: Iterator[str]) -> str:
    """The page with the text between the two marks of this name replaced."""
    begin, end = f"<!-- {name}: made by `make docs` -->\n", f"<!-- end of {name} -->"
    before, mark, rest = page.partition(begin)
    assert mark, f"docs/mcp.md has no mark {begin}"
    return f"{before}{begin}{''.join(parts)}{end}{rest.partition(end)[2]}"


# --- Markdown -----------------------------------------------------------------------------------


def _table(heads: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    lines = [heads, tuple("---" for _ in heads), *rows]
    yield "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def _page(parts: Iterator[str]) -> str:
    made = "\n".join(parts).rstrip("\n")
    return f"<!-- Made by `make docs` from the code. -->\n\n{made}\n"


if __name__ == "__main__":
    write()
