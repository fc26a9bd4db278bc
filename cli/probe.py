"""`cacp probe`: try a provider against its contract."""

import secrets
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.agreements import NOT_RUN, need_proof, of_contract, of_files, tell_doubts
from cli.client import DEFAULT_URL, connected
from cli.options import JsonOption, KeyOption, UrlOption, grouped
from cli.probe_options import ProbeOptions, parsed_header, parsed_value
from cli.probe_receipt import ProbeProof, ReceiptOptions, check_usage, command_line
from cli.probe_samples import SampleOptions, check_tracked, tried_samples
from cli.probe_view import outcome_lines
from cli.receipts import tell
from cli.terminal import USAGE, fail, notice, print_json
from schemas.plain import one_line

if TYPE_CHECKING:
    from collections.abc import Callable

    from proof.agreed import AgreedContract
    from proof.messages import Headers
    from proof.probe_outcome import ProbeOutcome
    from proof.sender import BaseUrl

SECRET_WORDS = ("auth", "cookie", "key", "token", "secret")
BEFORE_SECONDS = 300


@grouped
def probe(
    how: ProbeOptions,
    what: SampleOptions,
    receipts: ReceiptOptions,
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
    url: UrlOption = DEFAULT_URL,
    key: KeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Try a provider: send generated requests, and hold each answer against the contract.

    Valid requests must be answered as declared: status, media type, headers and body. Invalid ones
    must be refused with 4XX, or by GraphQL with errors. What fails is made small and shown as a
    curl line.

    Events and data models are tried with --samples or --command.

    With a runner's key it leaves a receipt, as `cacp verify` does: in a clean git checkout of the
    commit that the repo has declared complete. With --serve the provider is that checkout's.

    Exit status 0 passed, 1 failed, 2 wrong usage, 3 no node, 4 it could not be tried.

    \b
    Examples:
      cacp probe "Get profile" --base-url http://localhost:8000 --repo backend-api
      cacp probe --file openapi.json --base-url http://localhost:8000 --cases 300 --seed 7
      cacp probe 0198c0df --base-url https://test.example.com/v1 --header "Authorization: Bearer …"
      cacp probe Users --base-url http://localhost:8000 --serve 'make run' --key-file runner.json
      cacp probe "Order placed" --command "python -m orders.example_events"
      cacp probe "Order placed" --command "python -m mailer.read_events" --side consumer
    """
    need_proof("probe")
    if (contract is None) == (file is None):
        fail(USAGE, "name a contract, or a file with --file")
    if sum(given is not None for given in (base_url, what.samples, what.command)) != 1:
        fail(USAGE, "name what to try: one of --base-url, --samples and --command")
    if how.serve is not None and base_url is None:
        fail(USAGE, "--serve starts what answers at --base-url")
    check_usage(file, what, how, receipts)
    seed = secrets.randbelow(2**31) if how.seed is None else how.seed
    proof = None
    if receipts.key_file is not None:
        side = what.side if what.command is not None else "provider"
        proof = ProbeProof.of(contract or "", receipts, side, url)
        agreed = proof.contract()
    else:
        agreed = _agreed(contract, file, url, key)
    tell_doubts(agreed)
    if proof is not None and what.samples is not None:
        check_tracked(what.samples, proof.tree)
    if base_url is None:
        _prepared(how.before)
        outcome = tried_samples(agreed, what, how, seed)
    else:
        outcome = _probed(agreed, base_url, how, seed)
    more: dict[str, Any] = {"repo": receipts.repo, "outputDigest": outcome.output_digest}
    if proof is not None:
        command = command_line(agreed.name, base_url, what, how, seed)
        receipt, recorded = proof.recorded(outcome, command, receipts.out)
        more |= {"repo": proof.asked.repo, "receipt": receipt.wire(), "recorded": recorded}
    if as_json:
        print_json(outcome.output() | more)
    else:
        for line in outcome_lines(agreed.title, outcome):
            typer.echo(line)
    if proof is not None:
        tell(receipt, recorded)
    raise typer.Exit(outcome.exit_status)


def _check_digest(contract: "AgreedContract") -> None:
    """End the command for a content without a digest, such as one with NaN."""
    try:
        _ = contract.digest
    except ValueError as error:
        why = one_line(error, 100)
        fail(USAGE, f"{contract.title} is not what a node takes (RFC 8785): {why}")


def _agreed(contract: str | None, file: Path | None, url: str, key: str | None) -> "AgreedContract":
    if file is not None:
        agreed = of_files([file])[0]
        _check_digest(agreed)
        return agreed
    with connected(url, key, oversees=True) as node:
        return of_contract(node, contract or "")


def _probed(
    contract: "AgreedContract", base_url: str, how: ProbeOptions, seed: int
) -> "ProbeOutcome":
    from proof.probe import parameter_names
    from proof.sender import BaseUrl

    try:
        url = BaseUrl(base_url)
        headers = tuple(parsed_header(text) for text in how.headers or ())
        values = dict(parsed_value(text) for text in how.values or ())
    except ValueError as error:
        fail(USAGE, str(error))

    names = parameter_names(contract)
    for name in values:
        if name not in names:
            right = f"there are {', '.join(names)}" if names else "there are no parameters"
            fail(USAGE, one_line(f"--value: no operation has a parameter {name}; {right}", 500))

    def tried() -> "ProbeOutcome":
        return _tried(contract, url, how, headers + _prepared(how.before), values, seed)

    return tried() if how.serve is None else _served(how.serve, url, how.time_limit, tried)


def _served(
    command: str, url: "BaseUrl", seconds: float, tried: "Callable[[], ProbeOutcome]"
) -> "ProbeOutcome":
    """The outcome while a provider's command runs. Ends the command line if it doesn't."""
    from cli.live_view import ended_by_signals
    from proof.serving import NotAnswering, serving

    try:
        with ended_by_signals(), serving(command, url, Path.cwd(), seconds) as served:
            outcome = tried()
            printed = served.printed()
            if outcome.result == "passed":
                served.check(url)
    except NotAnswering as problem:
        _tell_printed(problem.printed)
        fail(NOT_RUN, f"--serve: {problem}")
    if outcome.result != "passed":
        _tell_printed(printed)
    return outcome


def _tell_printed(lines: list[str]) -> None:
    for line in lines:
        typer.echo(f"  | {one_line(line, 500)}", err=True)


def _tried(
    contract: "AgreedContract",
    url: "BaseUrl",
    how: ProbeOptions,
    headers: "Headers",
    values: dict[str, str],
    seed: int,
) -> "ProbeOutcome":
    from proof.probe import base_path, probe
    from proof.sender import ProbeSender
    from proof.trial import ProbePlan

    if base := base_path(contract, url).removeprefix(url.path):
        notice(f"requests go to {url.origin}{base}, as the contract's first server has it")
    secret = tuple(name for name, _ in headers if any(w in name.lower() for w in SECRET_WORDS))
    plan = ProbePlan(how.cases, seed, values, secret, bool(secret), how.allow_skipped)
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
