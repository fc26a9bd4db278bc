"""Types of contracts, made by generators in processes of their own."""

import hashlib
import importlib.metadata
import json
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import cacp_launcher
from cli.pull_generated import NoTypes, check_python, check_typescript
from cli.pull_lock import Language
from contracts.typed import TooManySchemas, typed_schemas
from proof.agreed import AgreedContract
from schemas.plain import one_line

PYTHON_PACKAGE = "datamodel-code-generator"
TYPESCRIPT_PACKAGE = "openapi-typescript@7.13.0"
SECONDS_MAX = 120.0
"""How long a generator may take for all contracts, with npx fetching it."""
INPUT_MAX = 5_000_000
"""Characters of the schemas of one contract that types are made of."""


class GenerationFailed(Exception):
    """No types could be made; the message says why, and what would help."""


class GeneratorStopped(GenerationFailed):
    """The generator itself ended with an error, perhaps for one of its inputs."""


class TypesInput(NamedTuple):
    """What types are made of: the first line of their file, and an OpenAPI document."""

    header: str
    document: Mapping[str, Any]

    @property
    def digest(self) -> str:
        text = json.dumps([self.header, self.document], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()


def types_input(contract: AgreedContract) -> TypesInput | str:
    """What the types of a contract are made of, or why it has none."""
    if contract.interface.dialect in ("graphql", "protobuf"):
        return f"{contract.interface.dialect} has generators of its own, which take its text"
    try:
        schemas = typed_schemas(contract.interface, contract.name)
    except TooManySchemas as error:
        return str(error)
    if not schemas:
        return "nothing in it has a schema"
    document = {
        "openapi": "3.1.0",
        "info": {"title": "Types", "version": "1"},
        "paths": {},
        "components": {"schemas": schemas},
    }
    if len(json.dumps(document)) > INPUT_MAX:
        return f"its schemas have more than {INPUT_MAX:,} characters"
    title = contract.title.replace("\\", "/").replace("*/", "* /")
    return TypesInput(f"Made by cacp pull of {title}: change the contract, not this.", document)


def generator_of(language: Language) -> str | None:
    """What makes the types of a language, for the lock; None if it is not installed."""
    if language == "typescript":
        return TYPESCRIPT_PACKAGE
    try:
        return f"{PYTHON_PACKAGE}@{importlib.metadata.version(PYTHON_PACKAGE)}"
    except importlib.metadata.PackageNotFoundError:
        return None


class Generated(NamedTuple):
    """The text of types by the name of their input, and why there are none for others."""

    texts: dict[str, str]
    failed: dict[str, str]


def generated(language: Language, inputs: Mapping[str, TypesInput]) -> Generated:
    """The types of each input, under its name, which is that of a file.

    The same text for the same input, by the same generator. Raises GenerationFailed if none can be
    made.
    """
    if not inputs:
        return Generated({}, {})
    documents = {name: given.document for name, given in inputs.items()}
    with TemporaryDirectory(prefix="cacp-pull-") as folder:
        make = _python if language == "python" else _typescript
        made = make(Path(folder), documents)
    check, mark = (check_python, "#") if language == "python" else (check_typescript, "//")
    texts: dict[str, str] = {}
    for name, text in made.texts.items():
        whole = f"{mark} {inputs[name].header}\n{text}"
        try:
            check(whole)
            texts[name] = whole
        except NoTypes as error:
            made.failed[name] = f"what the generator made is refused: {error}"
    return Generated(texts, made.failed)


def _python(folder: Path, documents: Mapping[str, Any]) -> Generated:
    if generator_of("python") is None:
        raise GenerationFailed(
            f"types of Python need {PYTHON_PACKAGE}, of the extra `codegen` of this package: "
            "pip install 'cacp-server[codegen]'"
        )
    (folder / "documents").write_text(json.dumps([*documents.values()]))
    output = _run(
        cacp_launcher.command("-m", "cli.pull_python"),
        folder,
        time.monotonic() + SECONDS_MAX,
        "documents",
    )
    made = Generated({}, {})
    for name, line in zip(documents, output.splitlines(), strict=True):
        answer = json.loads(line)
        if "why" in answer:
            made.failed[name] = one_line(f"the generator can't: {answer['why']}", 200)
        else:
            # The generator's own header is an empty comment.
            made.texts[name] = answer["text"].removeprefix("#\n").strip() + "\n"
    return made


def _typescript(folder: Path, documents: Mapping[str, Any]) -> Generated:
    deadline = time.monotonic() + SECONDS_MAX
    try:
        return Generated(_declarations(folder, documents, deadline), {})
    except GeneratorStopped:
        pass
    # One that it can't make types of must not keep the others from theirs.
    made = Generated({}, {})
    for name, document in documents.items():
        alone = folder / f"{name}.alone"
        alone.mkdir()
        try:
            made.texts.update(_declarations(alone, {name: document}, deadline))
        except GeneratorStopped as error:
            made.failed[name] = f"the generator can't: {error}"
    return made


def _declarations(folder: Path, documents: Mapping[str, Any], deadline: float) -> dict[str, str]:
    apis = {}
    for name, document in documents.items():
        (folder / f"{name}.json").write_text(json.dumps(document))
        apis[name] = {"root": f"./{name}.json", "x-openapi-ts": {"output": f"./{name}.d.ts"}}
    (folder / "redocly.yaml").write_text(json.dumps({"apis": apis}))
    options = ["--root-types", "--root-types-no-schema-prefix", "--root-types-keep-casing"]
    command = ["npx", "--yes", TYPESCRIPT_PACKAGE, *options, "--empty-objects-unknown"]
    try:
        _run(command, folder, deadline)
    except FileNotFoundError:
        raise GenerationFailed(
            "types of TypeScript need npx, of Node.js 18 or newer (https://nodejs.org)"
        ) from None
    try:
        return {name: (folder / f"{name}.d.ts").read_text() for name in documents}
    except FileNotFoundError as error:
        name = Path(error.filename).name
        raise GenerationFailed(f"{TYPESCRIPT_PACKAGE} wrote no {name}") from None


def _run(command: Sequence[str], folder: Path, deadline: float, stdin: str = os.devnull) -> str:
    """What a program prints. It is ended with all that it started, however this ends."""
    with (
        (folder / stdin).open("rb") as given,
        (folder / "printed").open("w") as printed,
        (folder / "errors").open("w") as errors,
    ):
        process = subprocess.Popen(
            command, cwd=folder, stdin=given, stdout=printed, stderr=errors, start_new_session=True
        )
        try:
            status = process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            raise GenerationFailed(
                f"{Path(command[0]).name} took more than {SECONDS_MAX:g} seconds to make types"
            ) from None
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    if status == 0:
        return (folder / "printed").read_text()
    text = (folder / "errors").read_text(errors="replace")
    lines = [line for line in text.splitlines() if "rror:" in line] or text.splitlines()[-3:]
    why = one_line(" ".join(lines), 300) or f"it ended with status {status}"
    if "npm error" in text:
        raise GenerationFailed(f"{Path(command[0]).name} can't fetch {TYPESCRIPT_PACKAGE}: {why}")
    raise GeneratorStopped(why)
