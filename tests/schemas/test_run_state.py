"""`state.v2` (agent-threader-v2 §7)."""

from schemas.run_state import RunState

EXAMPLE = {
    "state_version": "2.0",
    "run_id": "run-20260320-001",
    "run_status": "RUNNING",
    "abort_reason": None,
    "manifest_digest": "sha256:example",
    "policy": {
        "heal_schedule": "auto",
        "batch_strategy": "fibonacci",
        "current_batch_size": 2,
        "failure_threshold": 0.2,
        "max_worker_attempts_per_task": 2,
        "max_heal_rounds_per_window": 2,
        "max_total_heal_rounds": 8,
        "signature_repeat_limit": 2,
    },
    "tasks": {
        "WP-017": {
            "status": "FAILED",
            "worker_attempts": 1,
            "healer_attempts": 1,
            "last_failure_class": "build_error",
            "last_failure_signature": "build_error:missing-cn-import",
            "applied_patch_ids": ["patch-001"],
            "history": [
                {
                    "task_id": "WP-017",
                    "phase": "worker",
                    "attempt_number": 1,
                    "log_path": "logs/WP-017.worker.1.log",
                    "verify_log_path": "logs/WP-017.verify.1.log",
                    "exit_code": 0,
                    "failure_class": "build_error",
                    "failure_signature": "build_error:missing-cn-import",
                    "applied_patch_ids": [],
                    "duration_sec": 42,
                    "timestamp": "2026-03-20T15:21:00Z",
                }
            ],
        }
    },
    "healing_rounds": [
        {
            "round_number": 1,
            "scope": "batch",
            "window_task_ids": ["WP-017", "WP-018"],
            "failed_task_ids": ["WP-017", "WP-018"],
            "decision": "RETRY",
            "applied_patch_ids": ["patch-001"],
            "timestamp": "2026-03-20T15:25:00Z",
        }
    ],
}


def test_the_specifications_example_is_valid() -> None:
    state = RunState.model_validate(EXAMPLE)
    assert state.tasks["WP-017"].history[0].exit_code == 0
    assert RunState.model_validate_json(state.model_dump_json()) == state
