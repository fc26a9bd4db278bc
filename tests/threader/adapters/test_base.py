"""What all adapters share: contracts come from the shared parser (agent-threader-v2 §9)."""

from pathlib import Path

from schemas.manifest import AdapterSpec
from tests.threader.adapters.test_cli import context
from tests.threader.projects import heal_block, result_block
from threader.adapters import make_adapter
from threader.adapters.base import ExecutionArtifact
from threader.outcome import Ending
from threader.parsing import ParsedContract, ParserFailure
from threader.process import Exit


def test_results_and_decisions_are_read_from_the_log(tmp_path: Path) -> None:
    adapter = make_adapter(AdapterSpec(adapter="command", command=["w"]))
    ctx = context(tmp_path)
    artifact = ExecutionArtifact(ctx.log_path, Exit(Ending.EXITED, 0, 1.0))
    ctx.log_path.write_bytes(b"")
    assert isinstance(adapter.extract_result(artifact, ctx), ParserFailure)
    ctx.log_path.write_text(result_block("A") + heal_block())
    assert isinstance(adapter.extract_result(artifact, ctx), ParsedContract)
    assert isinstance(adapter.extract_decision(artifact), ParsedContract)
    ctx.log_path.write_text(result_block("B"))
    assert isinstance(adapter.extract_result(artifact, ctx), ParserFailure)
