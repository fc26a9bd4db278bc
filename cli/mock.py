"""`cacp mock`: serve agreed endpoints, and hold what was recorded against their contracts."""

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from cli.agreements import (
    NOT_RUN,
    STATUSES,
    FilesOption,
    need_proof,
    of_files,
    of_project,
    tell_doubts,
)
from cli.client import DEFAULT_URL, connected
from cli.options import JsonOption, KeyOption, RunnerKeyOption, UrlOption
from cli.receipts import RepoOption
from cli.terminal import REFUSED, USAGE, fail, notice, print_json
from schemas.plain import one_line

if TYPE_CHECKING:
    from proof.agreed import AgreedContract
    from proof.mock import Mock
    from proof.recording_check import RecordingCheck


MOCK_URL = "CACP_MOCK_URL"
"""The variable that tells a command where the mock is."""
UNUSED_MAX = 10
"""Operations that a recording doesn't use, as far as they are named."""


class _MockGroup(TyperGroup):
    """Takes `cacp mock PROJECT` for `cacp mock serve PROJECT`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        known = {*self.commands, "--help", "-h"}
        return super().parse_args(ctx, args if not args or args[0] in known else ["serve", *args])


app = typer.Typer(
    name="mock",
    help="Serve the agreed endpoints of a project, for the tests of those who call them.\n\n"
    "`cacp mock PROJECT` is short for `cacp mock serve PROJECT`.\n\n"
    "Example: cacp mock Coupons --record calls.jsonl",
    cls=_MockGroup,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    epilog=STATUSES,
)

ProjectsArgument = Annotated[
    str | None,
    typer.Argument(metavar="PROJECT", help="A project's name, its id, or the beginning of it."),
]


@app.command()
def serve(
    project: ProjectsArgument = None,
    files: FilesOption = None,
    host: Annotated[str, typer.Option("--host", help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="Port; 0 chooses a free one.")
    ] = 4010,
    seed: Annotated[
        int, typer.Option("--seed", min=0, help="Another seed makes other values.")
    ] = 0,
    record: Annotated[
        Path | None,
        typer.Option("--record", metavar="FILE", help="Append each exchange to this file, JSONL."),
    ] = None,
    command: Annotated[
        str | None,
        typer.Option(
            "--run",
            metavar="COMMAND",
            help="Serve only while this runs in a shell, which has the mock's address as "
            f"{MOCK_URL}, and end with its exit status.",
        ),
    ] = None,
    url: UrlOption = DEFAULT_URL,
    key: KeyOption = None,
) -> None:
    """Serve every agreed endpoint of a project until Ctrl-C, or while a command runs.

    A request that breaks its contract is refused: the answer says what is wrong, where, and what
    would be right. Else the answer is an example of the contract, or made from its schema, the same
    each time. `Prefer: code=404` asks for another declared answer, `Prefer: example=NAME` for a
    named example. A contract of GraphQL is served at /graphql. Each answer has the header
    X-CACP-Mock.

    With --run, exit status 1 means that a request broke its contract too, and 4 that none came.

    \b
    Examples:
      cacp mock Coupons
      cacp mock Coupons --port 0 --run 'npm test'
      cacp mock serve Coupons --port 4010 --record calls.jsonl
      cacp mock --file openapi.json --seed 7
    """
    need_proof("mock")
    contracts = _contracts(project, files, url, key)
    from proof.mock import Mock

    mock = Mock(contracts, seed)
    _tell(mock, contracts)
    if not mock.served and not mock.graphql:
        fail(NOT_RUN, "no agreed contract has an endpoint with a method and a path to serve")
    _run(mock, host, port, record, command)


@app.command()
def check(
    recording: Annotated[
        Path, typer.Argument(metavar="RECORDING", help="A file of `cacp mock --record`.")
    ],
    project: ProjectsArgument = None,
    files: FilesOption = None,
    repo: RepoOption = None,
    key_file: RunnerKeyOption = None,
    url: UrlOption = DEFAULT_URL,
    key: KeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Hold a recording against the contracts as they are agreed now.

    It fails if a recorded request breaks its contract, or is in none of them. A recording without
    a request to any of them, or of whose requests to one of them none was answered with success,
    shows nothing: exit status 4.

    With a runner's key it leaves a receipt for each contract that the recording has requests to and
    that the repo consumes: in a clean git checkout of the commit that the repo has declared
    complete, after which the tests must have been recorded.

    \b
    Examples:
      cacp mock check calls.jsonl Coupons
      cacp mock check calls.jsonl Coupons --repo web --key-file runner.json
      cacp mock check calls.jsonl --file openapi.json --json
    """
    need_proof("mock")
    if key_file is not None and files:
        fail(USAGE, "a receipt is of a node's contract: leave out --file, or the runner's key")
    from cli.mock_receipts import RecordingProof
    from proof.recording import UnreadableRecording, recorded
    from proof.recording_check import check_recording, unused

    proof = None if key_file is None else RecordingProof(key_file, repo, url)
    contracts = _contracts(project, files, url, key if proof is None else proof.keys.api_key)
    try:
        checked = check_recording(contracts, recorded(recording), datetime.now(UTC))
    except UnreadableRecording as error:
        fail(USAGE, f"{recording}: {error}")
    except OSError as error:
        fail(USAGE, f"can't read {recording}: {error.strerror}")
    if not as_json:
        _print_check(checked)
    receipts, is_whole = ([], True) if proof is None else proof.receipts(checked, recording)
    if as_json:
        output: dict[str, Any] = {
            "contracts": [
                {
                    "name": contract.name,
                    "contractId": contract.contract_id,
                    **outcome.output(),
                    "unused": unused(contract, outcome),
                }
                for contract, outcome in checked.outcomes
            ],
            "elsewhere": [failure.output() for failure in checked.elsewhere],
        }
        print_json(output if proof is None else output | {"receipts": receipts})
    raise typer.Exit(checked.exit_status or (0 if is_whole else REFUSED))


def _contracts(
    project: str | None, files: list[Path] | None, url: str, key: str | None
) -> "list[AgreedContract]":
    if (project is None) == (not files):
        fail(USAGE, "name a project, or files with --file")
    if files:
        return of_files(files)
    with connected(url, key, oversees=True) as node:
        return of_project(node, project or "")


def _tell(mock: "Mock", contracts: "list[AgreedContract]") -> None:
    """Say on stderr what is served, and what is doubtful about it."""
    from proof.agreed import unsound_examples

    for contract in contracts:
        tell_doubts(contract)
        for line in unsound_examples(contract):
            notice(f"{contract.title}: {line}, so it is not used")
        if not contract.operations and contract.interface.dialect != "graphql":
            notice(f"{contract.title}: it has no method and path to serve")
    for line in (*mock.doubled(), *mock.unserved()):
        notice(line)


def _run(mock: "Mock", host: str, port: int, record: Path | None, command: str | None) -> None:
    """Serve until the process is told to end, or the command has."""
    import socket

    from cli.mock_server import MockServer
    from proof.recording import Recorder

    try:
        recorder = None if record is None else Recorder(record, mock.contracts)
    except OSError as error:
        fail(USAGE, f"can't write {record}: {error.strerror}")
    try:
        listening = socket.create_server((host, port))
    except OSError as error:
        fail(USAGE, f"can't listen at {host}:{port}: {error.strerror}")
    own = f"http://{host}:{listening.getsockname()[1]}"
    server = MockServer(mock, listening, recorder, is_quiet=command is not None)
    if command is None:
        _say_where(mock, own)
        server.serve()
        return
    from proof.git_tree import clean_environment

    status = server.serve_beside(command, clean_environment() | {MOCK_URL: own})
    if status:
        fail(status, f"--run ended with status {status}")
    if server.refused:
        requests = f"{server.refused} of {server.asked} requests"
        fail(REFUSED, f"{requests} broke their contract, or are in none")
    if not server.asked:
        fail(
            NOT_RUN, f"the command passed, and called nothing at {own}, which it has as {MOCK_URL}"
        )
    notice(f"{server.asked} requests, each as agreed")


def _say_where(mock: "Mock", own: str) -> None:
    from proof.graphql_http import PATH

    for served in mock.served:
        operation = served.check.operation
        if not served.check.is_endless:
            where = one_line(f"{own}{served.base}{operation.route}")
            typer.echo(f"{one_line(operation.method):7} {where}")
    if mock.graphql:
        typer.echo(f"{'POST':7} {own}{PATH}")
    typer.echo(f"Ready at {own}")
    sys.stdout.flush()


def _print_check(checked: "RecordingCheck") -> None:
    from cli.probe_view import outcome_lines
    from proof.recording_check import unused

    for contract, outcome in checked.outcomes:
        for line in outcome_lines(contract.title, outcome):
            typer.echo(line)
        left = unused(contract, outcome) if outcome.cases else []
        if left:
            every = len({check.key for check in contract.operations})
            more = f" and {len(left) - UNUSED_MAX} more" if len(left) > UNUSED_MAX else ""
            names = one_line(", ".join(left[:UNUSED_MAX]))
            typer.echo(f"  used {every - len(left)} of {every} operations; not {names}{more}")
    for failure in checked.elsewhere:
        typer.echo(one_line(f"✗ {failure.operation}: {failure.why}"))
