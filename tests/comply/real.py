"""Real agents, for `make comply`: fetched into a cache folder, run, and shown in a matrix.

    python -m tests.comply.real CACHE docs/comply-matrix.md

Each agent that needs a model has a scripted one of its own (`cacp comply model`): nobody needs an
account, and what an agent asks other hosts is refused. What follows the marker in the page is
judged by hand, and kept.
"""

import json
import os
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from comply.files import SUITES
from comply.source import SUFFIX
from tests.comply.real_agents import AGENTS, SDK, Real
from tests.support.npm import npm_install

MARKER = "<!-- Below: judged by hand. `make comply` keeps it. -->"
JOBS, SECONDS = 2, 180
HEAD = """# Real agents against the suite `acp`

Made by `make comply` with the {tests} tests that the suite had then, without an account: who needs
a model has the scripted one ([comply-model.md](comply-model.md)). So this shows the agents, not
their models.

| agent | package | how it was run | asked other hosts, in vain |
|---|---|---|---|
"""
CACP = (sys.executable, "-m", "cli.main", "comply")


def fetch(cache: Path, agents: Sequence[Real]) -> None:
    """The packages, in the cache folder. What is there stays."""
    for name in ("sdk", "logs"):
        (cache / name).mkdir(parents=True, exist_ok=True)
    package, version = SDK.split("==")
    folder = cache / "sdk" / f"{package.replace('-', '_')}-{version}"
    if not folder.exists():
        download = ["download", "--no-deps", "--no-binary", ":all:", "-d", str(cache / "sdk"), SDK]
        subprocess.run([sys.executable, "-m", "pip", *download], check=True)
        with tarfile.open(folder.with_name(folder.name + ".tar.gz")) as archive:
            archive.extractall(cache / "sdk", filter="data")
    packages = [one.package for one in agents if "==" not in one.package]
    npm_install(cache / "npm", packages)


@contextmanager
def scripted(log: Path) -> Iterator[str]:
    """A scripted model as long as this lasts; its URL."""
    log.unlink(missing_ok=True)
    command = [*CACP, "model", "--port", "0", "--log", str(log)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def asked_others(log: Path) -> bool:
    """Whether an agent asked its proxy, the model, for other hosts. The log names them."""
    lines = log.read_text().splitlines() if log.exists() else []
    return any(json.loads(line)["status"] == 403 for line in lines)


def report(file: Path, agents: Sequence[Real]) -> str:
    """The Markdown report, without its title. Findings are no failure here."""
    named = [word for one in agents for word in ("--agent", one.name)]
    given = ["--settings", str(file), "-j", str(JOBS), "--timeout", str(SECONDS)]
    done = subprocess.run(
        [*CACP, "run", "acp", *named, *given],
        stdout=subprocess.PIPE,
        text=True,
        check=False,
        env=os.environ,
    )
    # An error of a single test is told in the report.
    if not done.stdout:
        sys.exit(done.returncode)
    return done.stdout.partition("\n\n")[2].replace("\n## ", "\n### ")


def how(agents: Sequence[Real], cache: Path) -> str:
    """A row for each agent."""
    rows = []
    for one in agents:
        others = "yes" if asked_others(cache / "logs" / f"{one.name}.jsonl") else "no"
        rows.append(f"| {one.name} | `{one.package}` | {one.how} | {others} |\n")
    return "".join(rows)


def main(cache: Path, page: Path) -> None:
    fetch(cache, AGENTS)
    file = cache / "agents.json"
    with ExitStack() as models:
        servers = {}
        for one in AGENTS:
            log = cache / "logs" / f"{one.name}.jsonl"
            url = models.enter_context(scripted(log)) if one.pointed else ""
            servers[one.name] = one.server(cache, url)
        file.write_text(json.dumps({"agent_servers": servers}, indent=2))
        made = report(file, AGENTS)
    head = HEAD.format(tests=len(list(SUITES.glob(f"acp/*{SUFFIX}"))))
    judged = page.read_text().partition(MARKER)[2] if page.exists() else "\n"
    page.write_text(f"{head}{how(AGENTS, cache)}\n## Verdicts\n\n{made}\n{MARKER}{judged}")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), Path(sys.argv[2]))
