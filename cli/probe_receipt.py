"""The receipt that `cacp probe` leaves with a runner's keys: of what, and as which command."""

import json
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from cli.client import CallRefused, NodeClient, NodeUnreachable
from cli.options import RunnerKeyOption
from cli.receipts import (
    OutOption,
    ProvenSide,
    RepoOption,
    asked_of,
    checkout,
    keep,
    record,
    runner_keys,
    sign_probe,
    write_copy,
)
from cli.terminal import REFUSED, UNREACHABLE, USAGE, fail

if TYPE_CHECKING:
    from cli.probe_options import ProbeOptions
    from cli.probe_samples import SampleOptions
    from proof.agreed import AgreedContract
    from proof.git_tree import GitTree
    from proof.probe_outcome import ProbeOutcome
    from proof.runner_key import RunnerKeys
    from proof.subject import ProofSubject
    from schemas.receipt import ProofReceipt

Json = dict[str, Any]
Side = Literal["provider", "consumer"]
HIDDEN = "[hidden]"
CASES_MIN = 20
"""Fewer cases than this prove nothing."""


@dataclass(frozen=True)
class ReceiptOptions:
    """Whose receipt a probe leaves."""

    repo: RepoOption = None
    key_file: RunnerKeyOption = None
    out: OutOption = None


@dataclass(frozen=True)
class ProbeProof:
    """A side that a probe may prove: whose checkout, by which runner, at which node."""

    asked: "ProofSubject"
    tree: "GitTree"
    keys: "RunnerKeys"
    url: str

    @classmethod
    def of(cls, contract: str, options: ReceiptOptions, side: Side, url: str) -> "ProbeProof":
        """Ends the command when a receipt would prove nothing."""
        keys, tree = runner_keys(options.key_file), checkout()
        wanted = ProvenSide(contract, options.repo, side)
        return cls(asked_of(keys, url, wanted, tree), tree, keys, url)

    def contract(self) -> "AgreedContract":
        """The contract with the content of the version that is asked for, kept for a time without
        the node. Ends the command if the node has another by now."""
        from proof.agreed import AgreedContract
        from proof.subject import kept_file

        asked = self.asked
        kept = kept_file(self.tree, f"content-{asked.digest[:16]}.json")
        at = {"projectId": asked.project_id, "contractId": asked.contract_id}
        try:
            with NodeClient(self.url, self.keys.api_key) as node:
                seen = node.call("cacp/contract/get", at)
            text = json.dumps({"type": seen["type"], "content": seen["content"]})
        except NodeUnreachable as problem:
            try:
                text = kept.read_text()
            except OSError:
                fail(UNREACHABLE, f"nothing was run: {problem}")
        except CallRefused as problem:
            fail(REFUSED, f"nothing was run: {problem}")
        try:
            held = json.loads(text)
            contract = AgreedContract(
                asked.contract, held["content"], held["type"], asked.contract_id, asked.version
            )
            is_it = contract.digest == asked.digest
        except (ValueError, KeyError, TypeError):
            is_it = False
        if not is_it:
            fail(REFUSED, "nothing was run: the contract has just changed; try again")
        keep(kept, text)
        return contract

    def recorded(
        self, outcome: "ProbeOutcome", command: str, out: Path | None
    ) -> tuple["ProofReceipt", Json]:
        """The receipt, and what became of it."""
        receipt = sign_probe(self.asked, self.tree, self.keys, outcome, command)
        write_copy(out, self.asked.project_id, receipt)
        return receipt, record(self.keys, self.url, self.asked.project_id, receipt, self.tree)


def check_usage(
    file: Path | None, what: "SampleOptions", how: "ProbeOptions", options: ReceiptOptions
) -> None:
    """End the command where its options ask for a receipt that can't be."""
    if options.key_file is None:
        if options.out is not None:
            fail(USAGE, "--out writes a receipt, which a runner's --key-file makes")
    elif file is not None:
        fail(USAGE, "a receipt is of a node's contract: leave out --file, or the runner's key")
    elif how.allow_mock:
        fail(USAGE, "a probe of a mock proves nothing: leave out --allow-mock, or the runner's key")
    elif what.samples is None and how.cases < CASES_MIN:
        fail(USAGE, f"a receipt is of at least {CASES_MIN} --cases")
    elif what.side == "consumer" and what.command is None:
        fail(USAGE, "only a --command can be a consumer's")


def command_line(
    contract: str, base_url: str | None, what: "SampleOptions", how: "ProbeOptions", seed: int
) -> str:
    """The command of a receipt. What may be secret is hidden: values of headers and parameters, and
    what prepares the provider. With its seed, so that a failure stands until these cases pass."""
    return shlex.join(["cacp", "probe", contract, *_words(base_url, what, how, seed)])


def _words(
    base_url: str | None, what: "SampleOptions", how: "ProbeOptions", seed: int
) -> Iterator[str]:
    samples = None if what.samples is None else str(what.samples)
    given = {"--base-url": base_url, "--samples": samples, "--command": what.command}
    for option, value in (given | {"--serve": how.serve}).items():
        if value is not None:
            yield from (option, value)
    if what.command is not None:
        yield from ("--side", what.side)
    for text in how.headers or ():
        yield from ("--header", f"{text.partition(':')[0].strip()}: {HIDDEN}")
    for text in how.values or ():
        yield from ("--value", f"{text.partition('=')[0]}={HIDDEN}")
    if how.before is not None:
        yield from ("--before", HIDDEN)
    if how.allow_skipped:
        yield "--allow-skipped"
    if what.samples is None:
        yield from ("--cases", str(how.cases), "--seed", str(seed))
