"""The boundary to agent CLIs: only here is known how each one works (agent-threader-v2 §9)."""

from collections.abc import Callable

from schemas.manifest import AdapterSpec
from threader.adapters.base import Adapter


def make_adapter(spec: AdapterSpec) -> Adapter:
    """The adapter that `spec` names. Heavy ones are imported on use only."""
    if spec.adapter == "interactive":
        from threader.adapters.interactive import InteractiveAdapter

        return InteractiveAdapter(spec)
    if spec.adapter == "acp":
        from threader.adapters.acp import AcpAdapter

        return AcpAdapter(spec)
    from threader.adapters.cli import AgentAdapter, ClaudeAdapter, CommandAdapter, OpencodeAdapter

    kinds: dict[str, Callable[[AdapterSpec], Adapter]] = {
        "command": CommandAdapter,
        "claude": ClaudeAdapter,
        "opencode": OpencodeAdapter,
        "agent": AgentAdapter,
    }
    return kinds[spec.adapter](spec)
