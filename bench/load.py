"""Loads a server with wrk, and reads what wrk measured."""

import json
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CONNECTIONS = 16
UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0}

SCRIPT = """
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
wrk.body = [==[{body}]==]
"""


@dataclass(frozen=True, slots=True)
class Measured:
    """One run: requests per second, latencies in seconds, and how many responses were not 2xx."""

    rate: float
    median: float
    p99: float
    failed: int


def require_wrk() -> None:
    if shutil.which("wrk") is None:
        raise SystemExit("make bench needs wrk (Debian: apt-get install wrk)")


def request(method: str, params: dict[str, Any]) -> str:
    return json.dumps({"jsonrpc": "2.0", "method": method, "params": params, "id": "request-123"})


def post(
    port: int, body: str, seconds: float, folder: Path, connections: int = CONNECTIONS
) -> Measured:
    """POST `body` repeatedly, over so many connections, from one thread."""
    script = folder / "wrk.lua"
    script.write_text(SCRIPT.replace("{body}", body))
    return _wrk(port, "/", seconds, ["-s", str(script), "-c", str(connections)])


def get(port: int, path: str, seconds: float) -> Measured:
    """GET `path` repeatedly, over one connection."""
    return _wrk(port, path, seconds, ["-c", "1"])


def _wrk(port: int, path: str, seconds: float, options: list[str]) -> Measured:
    url = f"http://127.0.0.1:{port}{path}"
    command = ["wrk", "-t1", f"-d{seconds:g}s", "--latency", *options, url]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    failed = re.search(r"Non-2xx or 3xx responses: (\d+)", text)
    return Measured(
        rate=float(_found(r"Requests/sec:\s+([\d.]+)", text)),
        median=_seconds(_found(r"\n +50%\s+(\S+)", text)),
        p99=_seconds(_found(r"\n +99%\s+(\S+)", text)),
        failed=int(failed[1]) if failed else 0,
    )


def _found(pattern: str, text: str) -> str:
    match = re.search(pattern, text)
    if match is None:
        raise SystemExit(f"wrk printed something unexpected:\n{text}")
    return match[1]


def _seconds(text: str) -> float:
    match = re.fullmatch(r"([\d.]+)(us|ms|s|m)", text)
    if match is None:
        raise SystemExit(f"wrk printed an unknown time: {text}")
    return float(match[1]) * UNITS[match[2]]
