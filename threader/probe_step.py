"""Probes of a verification profile, as the command lines that run them (N2)."""

import re
import shlex

from schemas.manifest import NodeSpec
from schemas.verify_profile import ProbeStep, VerifyProfile

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def with_commands(
    profile: VerifyProfile, node: NodeSpec | None, contract_id: str | None
) -> VerifyProfile:
    """The profile of a task, each of whose probes has the command that runs it. `contract_id` is
    the task's; `threader.load` refuses a task that lacks what its probes need."""
    steps = [
        step
        if step.probe is None or node is None
        else step.model_copy(update={"cmd": _command(step.probe, node, contract_id)})
        for step in profile.steps
    ]
    return profile.model_copy(update={"steps": steps})


def _command(probe: ProbeStep, node: NodeSpec, contract_id: str | None) -> str:
    """For /bin/sh. A runner's key is for `cacp thread receipts`, which runs the whole profile."""
    words = ["cacp", "probe", "--url", node.url, "--base-url", probe.base_url]
    words += ["--cases", str(probe.cases), "--seed", str(probe.seed)]
    if probe.serve is not None:
        words += ["--serve", probe.serve]
    words += ["--", probe.contract or contract_id or ""]
    variables = "CACP_RUNNER_KEY_FILE="
    if node.key_env != "CACP_KEY" and _VARIABLE.fullmatch(node.key_env):
        variables += f' CACP_KEY="${{{node.key_env}-}}"'
    return f"{variables} {shlex.join(words)}"
