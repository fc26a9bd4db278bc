"""What a node hears of a run."""

from typing import Any

from schemas.acp_payloads import PAYLOADS
from schemas.manifest import Manifest
from schemas.run_state import LearnedRule, RunState, RunStatus, TaskStatus
from tests.threader.builders import NOW, make_manifest, record
from threader.initial_state import new_state
from threader.interruptions import BY_SIGNAL, reopened, stopped
from threader.reports import all_calls, landed_commit, paused_calls

NODE = {"url": "http://n", "project_id": "p", "agent_id": "a", "escalate_to": "boss"}


def make(**node: Any) -> tuple[Manifest, RunState]:
    tasks: list[str | dict[str, Any]] = [{"id": "A", "contract_id": "c-1"}, "B"]
    manifest = make_manifest(tasks, node={**NODE, **node})
    return manifest, new_state(manifest, NOW)


def methods(manifest: Manifest, state: RunState) -> list[str]:
    return [call.method.rpartition("/")[2] for call in all_calls(manifest, state)]


def test_a_contracts_task_as_it_moves() -> None:
    manifest, state = make()
    assert methods(manifest, state) == []
    state.tasks["A"].runs = 1
    state.tasks["B"].runs = 1
    assert methods(manifest, state) == ["start"]
    state.tasks["A"].status = TaskStatus.DONE
    state.tasks["A"].history = [record("A").model_copy(update={"files": ["a.py"]})]
    calls = list(all_calls(manifest, state))
    assert [call.method.rpartition("/")[2] for call in calls] == ["start", "complete", "verify"]
    base = {"projectId": "p", "contractId": "c-1"}
    assert calls[1].params == {**base, "files": ["a.py"]}
    assert calls[2].params == {
        **base, "result": "success", "notes": "Verified by the profile none.",
    }  # fmt: skip


def test_a_completion_names_the_commit_that_holds_it() -> None:
    manifest, state = make()
    task = state.tasks["A"]
    task.runs, task.status = 1, TaskStatus.DONE
    task.history = [
        record("A").model_copy(update={"files": ["a.py"], "commit": "c" * 40}),
        record("A"),
    ]
    [_, complete, verify] = all_calls(manifest, state)
    assert complete.params["commit"] == landed_commit(task) == "c" * 40
    assert "commit" not in verify.params
    task.status = TaskStatus.FAILED
    assert landed_commit(task) is None


def test_escalations_and_learned_rules() -> None:
    manifest, state = make()
    state.tasks["B"].status = TaskStatus.ESCALATED
    state.tasks["B"].escalation_reason = "stuck"
    state.learned_rules = [LearnedRule(round_number=2, rule="Say how.")]
    shared, alert, rule = all_calls(manifest, state)
    assert shared.params["type"] == "implementation_status"
    assert (alert.method, alert.params["to"]) == ("acp/send", ["boss"])
    assert rule.params["content"]["decision"] == "Say how."
    quiet, state_too = make(escalate_to=None)
    state_too.tasks["B"].status = TaskStatus.ESCALATED
    assert methods(quiet, state_too) == ["share"]


def test_keys_are_unique_and_stable() -> None:
    manifest, state = make()
    for task in state.tasks.values():
        task.runs, task.status = 3, TaskStatus.DONE
    keys = [call.key for call in all_calls(manifest, state)]
    assert keys == ["start:A", "complete:A:3", "verify:A:3"]
    assert keys == [call.key for call in all_calls(manifest, state)]


def test_without_a_node_there_is_nothing_to_tell() -> None:
    manifest = make_manifest([{"id": "A", "contract_id": "c"}])
    state = new_state(manifest, NOW)
    state.tasks["A"].runs = 1
    assert list(all_calls(manifest, state)) == []


def test_the_end_is_mailed_whatever_it_is() -> None:
    manifest, state = make()
    models: dict[str, Any] = {str(kind): model for kind, model in PAYLOADS.items()}
    for status, done, kind in (
        (RunStatus.COMPLETED, True, "status.complete"),
        (RunStatus.COMPLETED, False, "status.blocked"),
        (RunStatus.ABORTED, False, "status.blocked"),
    ):
        state.run_status = status
        state.abort_reason = "no convergence" if status is RunStatus.ABORTED else None
        for task in state.tasks.values():
            task.status = TaskStatus.DONE if done else TaskStatus.FAILED
        mail = list(all_calls(manifest, state))[-1]
        assert (mail.method, mail.params["type"]) == ("acp/send", kind)
        models[kind].model_validate(mail.params["payload"])
    assert "no convergence" in mail.params["payload"]["summary"]
    PAYLOADS["status.blocked"].model_validate(
        next(paused_calls(manifest.node, state, "rate limited")).params["payload"]  # type: ignore[arg-type]
    )


def test_a_run_that_stopped_in_its_midst_is_mailed_unless_a_signal_stopped_it() -> None:
    manifest, state = make()
    stopped(state, NOW, BY_SIGNAL, [])
    assert list(all_calls(manifest, state)) == []
    stopped(state, NOW, "disk full", ["A"])
    (mail,) = all_calls(manifest, state)
    assert (mail.params["type"], mail.params["topic"]) == ("status.blocked", "run run-1 stopped")
    assert "disk full" in mail.params["payload"]["summary"]
    PAYLOADS["status.blocked"].model_validate(mail.params["payload"])
    stopped(state, NOW, "disk full", [])
    assert next(all_calls(manifest, state)).key == mail.key, "a resume that is refused alike"
    reopened(state, NOW)
    assert list(all_calls(manifest, state)) == []


def test_a_mail_names_no_folder_of_this_machine() -> None:
    manifest, state = make()
    said = (
        "the branch changed: `git -C /home/ann/my/shop switch main`, see https://x.org/a/b or 3/4"
    )
    stopped(state, NOW, said, [])
    (mail,) = all_calls(manifest, state)
    assert mail.params["payload"]["summary"].endswith(
        "`git -C …/shop switch main`, see https://x.org/a/b or 3/4"
    )
