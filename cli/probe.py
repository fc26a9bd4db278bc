"""`cacp probe`: try a provider against its contract."""

import secrets
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.agreements import NOT_RUN, need_proof, of_contract, of_files, tell_doubts
from cli.client import DEFAULT_URL, connected
from cli.options import JsonOption, KeyOption, UrlOption, grouped
from cli.probe_samples import SampleOptions, tried_samples
from cli.terminal import USAGE, fail, notice, print_json
from schemas.plain import one_line

if TYPE_CHECKING:
    from proof.agreed import AgreedContract
    from proof.probe_outcome import ProbeOutcome

SECRET_WORDS = ("auth", "cookie", "key", "token", "secret")
BEFORE_SECONDS = 300


@dataclass(frozen=True)
class ProbeOptions:
    """How much is sent, and with what."""

    cases: Annotated[int, typer.Option("--cases", min=1, help="Requests to each endpoint.")] = 100
    seed: Annotated[
        int | None,
        typer.Option("--seed", min=0, help="Draws the same cases again; random by default."),
    ] = None
    rate: Annotated[
        float,
        typer.Option("--rate", min=0, help="Requests each second; 0 for as fast as it answers."),
    ] = 0
    time_limit: Annotated[float, typer.Option("--time-limit", min=1, help="Seconds for all.")] = 300
    timeout: Annotated[
        float, typer.Option("--timeout", min=0.1, help="Seconds for each answer.")
    ] = 10
    headers: Annotated[
        list[str] | None,
        typer.Option(
            "--header",
            metavar="'NAME: VALUE'",
            help="Send this header along, such as credentials; repeatable.",
        ),
    ] = None
    values: Annotated[
        list[str] | None,
        typer.Option(
            "--value",
            metavar="NAME=VALUE",
            help="The value of a parameter in each request, such as the id of what is there; "
            "repeatable.",
        ),
    ] = None
    before: Annotated[
        str | None,
        typer.Option(
            "--before",
            metavar="COMMAND",
            help="Run this first, in a shell, to prepare the provider. Lines that it prints as "
            "NAME: VALUE are sent along as headers.",
        ),
    ] = None
    allow_mock: Annotated[
        bool,
        typer.Option("--allow-mock", help="Probe a mock too, which proves nothing."),
    ] = False


@grouped
def probe(
    how: ProbeOptions,
    what: SampleOptions,
    contract: Annotated[
        str | None,
        typer.Argument(
            metavar="[CONTRACT]", help="The contract's name, its id, or the beginning of it."
        ),
    ] = None,
    base_url: Annotated[
        str | None,
        typer.Option(
            "--base-url",
            metavar="URL",
            help="Where the provider runs. Nothing else is called.",
        ),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(
            "--file", metavar="FILE", help="The contract in a file, in place of a node's."
        ),
    ] = None,
    repo: Annotated[
        str | None,
        typer.Option("--repo", metavar="NAME", help="The repo whose program is probed."),
    ] = None,
    url: UrlOption = DEFAULT_URL,
    key: KeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Try a provider: send generated requests, and hold each answer against the contract.

    Valid requests must be answered as declared: status, media type, headers and body. Invalid ones
    must be refused with 4XX, or by GraphQL with errors. What fails is made small and shown as a
    curl line.

    Events and data models are tried with --samples or --command.

    Exit status 0 passed, 1 failed, 2 wrong usage, 3 no node, 4 it could not be tried.

    \b
    Examples:
      cacp probe "Get profile" --base-url http://localhost:8000 --repo backend-api
      cacp probe --file openapi.json --base-url http://localhost:8000 --cases 300 --seed 7
      cacp probe 0198c0df --base-url https://test.example.com/v1 --header "Authorization: Bearer …"
      cacp probe "Order placed" --command "python -m orders.example_events"
      cacp probe "Order placed" --command "python -m mailer.read_events" --side consumer
    """
    need_proof("probe")
    if (contract is None) == (file is None):
        fail(USAGE, "name a contract, or a file with --file")
    if sum(given is not None for given in (base_url, what.samples, what.command)) != 1:
        fail(USAGE, "name what to try: one of --base-url, --samples and --command")
    agreed = _agreed(contract, file, url, key)
    tell_doubts(agreed)
    seed = secrets.randbelow(2**31) if how.seed is None else how.seed
    headers = _prepared(how.before)
    if base_url is None:
        outcome = tried_samples(agreed, what, how.cases, seed, how.time_limit)
    else:
        outcome = _probed(agreed, base_url, how, headers, seed)
    if as_json:
        print_json(outcome.output() | {"repo": repo, "outputDigest": outcome.output_digest})
    else:
        from cli.probe_view import outcome_lines

        for line in outcome_lines(agreed.title, outcome):
            typer.echo(line)
    raise typer.Exit(outcome.exit_status)


def _agreed(contract: str | None, file: Path | None, url: str, key: str | None) -> "AgreedContract":
    if file is not None:
        return of_files([file])[0]
    with connected(url, key, oversees=True) as node:
        return of_contract(node, contract or "")


def _probed(
    contract: "AgreedContract",
    base_url: str,
    how: ProbeOptions,
    prepared: tuple[tuple[str, str], ...],
    seed: int,
) -> "ProbeOutcome":
    from proof.probe import base_path, probe
    from proof.sender import BaseUrl, ProbeSender
    from proof.trial import ProbePlan

    try:
        url = BaseUrl(base_url)
        headers = tuple(parsed_header(text) for text in how.headers or ())
        values = dict(parsed_value(text) for text in how.values or ())
    except ValueError as error:
        fail(USAGE, str(error))
    headers += prepared
    if base := base_path(contract, url).removeprefix(url.path):
        notice(f"requests go to {url.origin}{base}, as the contract's first server has it")
    secret = tuple(name for name, _ in headers if any(w in name.lower() for w in SECRET_WORDS))
    plan = ProbePlan(how.cases, seed, values, secret, bool(secret))
    with ProbeSender(
        url,
        headers,
        rate=how.rate,
        seconds=how.time_limit,
        timeout=how.timeout,
        allow_mock=how.allow_mock,
    ) as sender:
        outcome = probe(contract, url, sender, plan, _progress)
    _end_progress()
    return outcome


def parsed_header(text: str) -> tuple[str, str]:
    """The name and value of a header. Raises ValueError.

    >>> parsed_header("X-Team: coupons")
    ('X-Team', 'coupons')
    """
    name, colon, value = text.partition(":")
    name, value = name.strip(), value.strip()
    known = name.isascii() and name.replace("-", "").replace("_", "").isalnum()
    if not colon or not known or not value.isprintable() or not value.isascii():
        raise ValueError(f"a header is like 'X-Team: coupons'; {one_line(name, 40)} is none")
    return name, value


def parsed_value(text: str) -> tuple[str, str]:
    """The name and value of a parameter. Raises ValueError."""
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise ValueError(f"a value is like id=7; {one_line(text, 40)} is none")
    return name, value


def _prepared(command: str | None) -> tuple[tuple[str, str], ...]:
    """Run what prepares the provider; the headers that it prints. Ends the command if it fails."""
    if command is None:
        return ()
    try:
        done = subprocess.run(
            ["sh", "-c", command],
            stdout=subprocess.PIPE,
            text=True,
            errors="replace",
            timeout=BEFORE_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        fail(NOT_RUN, f"--before did not end within {BEFORE_SECONDS} s")
    if done.returncode:
        fail(NOT_RUN, f"--before ended with status {done.returncode}")
    try:
        return tuple(parsed_header(line) for line in done.stdout.splitlines() if ": " in line)
    except ValueError as error:
        fail(NOT_RUN, f"--before printed a line that is no header: {error}")


def _progress(operation: str, sent: int, of: int) -> None:
    """Show how far the probe is, on a terminal."""
    if sys.stderr.isatty():
        line = one_line(f"{operation}: {sent} of {of}", 70)
        sys.stderr.write(f"\r{line:70}")
        sys.stderr.flush()


def _end_progress() -> None:
    if sys.stderr.isatty():
        sys.stderr.write(f"\r{'':70}\r")
