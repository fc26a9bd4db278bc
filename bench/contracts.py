"""What it costs to compare contracts, and to recognise what a proposal is written in."""

import copy
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from bench import load
from bench.fill import CONTENT, proposal
from bench.hot import seeded
from bench.load import Measured
from bench.mail import UNLIMITED
from bench.node import free_port, node, running
from contracts.compare import compare
from contracts.recognise import read

ENDPOINTS = 1_000
EXAMPLE = Path(__file__).parents[1] / "examples/orders"
SCHEMAS = 1_200
"""Schemas of the large document, which has some 2 MB with them."""


def endpoint_seconds() -> float:
    """The processor seconds to read and compare 1,000 pairs of versions of an endpoint."""
    pairs = [_versions(number) for number in range(ENDPOINTS)]
    begun = time.process_time()
    verdicts = [compare(read(before), read(after)).verdict for before, after in pairs]
    seconds = time.process_time() - begun
    assert set(verdicts) == {"compatible", "breaking"}
    return seconds


def _versions(number: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Two versions of an endpoint: a member more, or another type."""
    before: dict[str, Any] = CONTENT | {"path": f"/api/v1/things/{number}"}
    after = copy.deepcopy(before)
    members = after["responseBody"]["properties"]
    members["email"] = {"type": ["string", "null"]} if number % 2 else members["email"]
    members["avatar"] = {"type": "string"}
    return before, after


def document_seconds() -> tuple[float, float]:
    """The processor seconds to read and compare two OpenAPI documents, and the megabytes of one."""
    before, after = document("string"), document("integer")
    size = len(load.request("", {"content": before}))
    begun = time.process_time()
    comparison = compare(read(before), read(after))
    assert comparison.verdict == "breaking"
    return time.process_time() - begun, size / 1e6


def document(kind: str) -> dict[str, Any]:
    """A document of operations on schemas that refer to each other; in every tenth one member is of
    the given type."""
    schemas: dict[str, Any] = {}
    for number in range(SCHEMAS):
        members: dict[str, Any] = {
            f"member_{place}": {"type": "string", "description": f"Member {place} of {number}"}
            for place in range(20)
        }
        members["next"] = {"$ref": f"#/components/schemas/Thing{(number + 1) % SCHEMAS}"}
        if number % 10 == 0:
            members["kind"] = {"type": kind}
        schemas[f"Thing{number}"] = {"type": "object", "properties": members}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Things", "version": "1"},
        "paths": {f"/things/{number}": _path(number) for number in range(SCHEMAS)},
        "components": {"schemas": schemas},
    }


def _path(number: int) -> dict[str, Any]:
    schema = {"schema": {"$ref": f"#/components/schemas/Thing{number}"}}
    body = {"content": {"application/json": schema}}
    return {"post": {"requestBody": body, "responses": {"200": {"description": "it", **body}}}}


def propose_runs(
    folder: Path, rounds: int, seconds: float
) -> tuple[list[Measured], list[Measured]]:
    """Runs of contract/propose whose content is declared opaque, and whose dialect is recognised,
    in turn on one node."""
    opaque: list[Measured] = []
    recognised: list[Measured] = []
    with node(folder / "dialects.db", program=UNLIMITED) as running:
        project_id, _ = seeded(running)
        plain = proposal(project_id)
        for _ in range(rounds):
            for runs, more in ((opaque, {"dialect": "opaque"}), (recognised, {})):
                body = load.request("cacp/contract/propose", plain | more)
                runs.append(load.post(running.port, body, seconds, folder, load.CONNECTIONS))
    return opaque, recognised


def probe_seconds(runs: int) -> list[float]:
    """Each from the start of `cacp probe` to its end: 100 cases against the example's provider, of
    which some fail and one is made small."""
    port = free_port()
    quiet = ["--port", str(port), "--log-level", "warning"]
    serving = [sys.executable, "-m", "uvicorn", "orders:app", *quiet]
    with running(serving, port, "/orders/1", cwd=EXAMPLE / "backend-api"):
        return [_probed(f"http://127.0.0.1:{port}") for _ in range(runs)]


def _probed(base_url: str) -> float:
    of = ["--file", str(EXAMPLE / "place-an-order.json"), "--base-url", base_url]
    how = ["--cases", "100", "--seed", "1", "--json"]
    begun = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "cacp_launcher", "probe", *of, *how],
        stdout=subprocess.PIPE,
        check=False,
    )
    seconds = time.perf_counter() - begun
    outcome = json.loads(done.stdout)
    assert (outcome["cases"], len(outcome["failures"])) == (100, 1), outcome
    return seconds


def median_ratio(runs: list[Measured], base: list[Measured]) -> float:
    """The median of the ratios of runs that were made in turn."""
    return statistics.median(run.rate / other.rate for run, other in zip(runs, base, strict=True))
