"""Which refusals count towards a sender's circuit breaker (acp-canonical §12.4).

Abuse is an attempt at something forbidden: impersonation, exceeding one's authority, a policy or
the bounds of a thread, which only one's own messages exhaust. Everything else is a mistake: invalid
input, a wrong name, a race that another caller won, or a call that comes too early. Its refusal
says what would be right.
"""

_ABUSE = """
    sender_supplied wrong_signature not_its_home
    policy_violation broadcast_not_allowed
    not_human role_authority not_in_team not_in_thread not_a_member not_a_party not_the_owner
    other_project other_team wrong_party
    hop_limit round_limit
"""
_WRITTEN_WRONG = """
    invalid_params schema_invalid type_reserved unsupported_version too_large payload_too_large
    context_too_large hash_mismatch capability_mismatch party_left_out chain_differs
    agent_id_not_canonical
"""
_NAMED_WRONG = """
    not_found unknown_recipient unknown_team no_mailbox unknown_peer task_elsewhere held_at_several
    not_waiting human_needed human_elsewhere home_elsewhere looks_like_another
    not_the_sender
"""
_TOO_LATE = """
    illegal_transition archived project_archived repo_released
    client_id_reused idempotency_key_reused sequence_taken
    stale_version own_version already_member handoff_cycle handoff_id_taken last_coordinator
    ownership_conflict task_blocked task_exists task_status team_closed team_exists team_full
"""
_TOO_EARLY = "rate_limited circuit_open approval_limit"
# A caller without a key may use any name, and must not be able to block the agent of that name.
_NOT_PROVEN = "insufficient_trust not_a_peer operator_needed"

ABUSE = frozenset(_ABUSE.split())
MISTAKES = frozenset(
    " ".join((_WRITTEN_WRONG, _NAMED_WRONG, _TOO_LATE, _TOO_EARLY, _NOT_PROVEN)).split()
)
"""Together, every reason for which a method that writes messages is refused, except faults of the
node."""


def is_abuse(reason: str) -> bool:
    """Whether a refusal for this reason is abuse."""
    return reason in ABUSE
