"""The JSON-RPC methods, a folder per namespace. A method loads state, has the domain decide, and
applies the decision (design §2)."""

# Documentation lists the methods in this order.
from server.methods.cacp import (  # isort: skip
    attention,
    project,
    project_board,
    project_history,
    project_matrix,
    lifecycle,
    repo,
    contract,
    contract_overview,
    contract_diff,
    context,
    implementation,
    file,
    thread_run,
    agent_keys,
    activity,
    search,
)
from server.methods.sync import (  # isort: skip
    entity_sync,
    digest,
    bans,
    equivocation,
    file_exchange,
    project_state,
    registration,
)
from server.methods import rpc  # isort: skip
from server.methods.handoff import (  # isort: skip
    actions,
    forwarded,
    team,
    board,
)
from server.methods.acp import (  # isort: skip
    send,
    inbox,
    query,
    mail_threads,
)
from server.methods.handoff import human_gate  # isort: skip
from server.methods.acp import (  # isort: skip
    dead_letters,
    attention_overview,
    session_claim,
    lease,
    channels,
    remote_mail,
    agents,
    agent_overview,
)
from server.methods.base import METHODS

__all__ = [
    "METHODS",
    "actions",
    "activity",
    "agent_keys",
    "agent_overview",
    "agents",
    "attention",
    "attention_overview",
    "bans",
    "board",
    "channels",
    "context",
    "contract",
    "contract_diff",
    "contract_overview",
    "dead_letters",
    "digest",
    "entity_sync",
    "equivocation",
    "file",
    "file_exchange",
    "forwarded",
    "human_gate",
    "implementation",
    "inbox",
    "lease",
    "lifecycle",
    "mail_threads",
    "project",
    "project_board",
    "project_history",
    "project_matrix",
    "project_state",
    "query",
    "registration",
    "remote_mail",
    "repo",
    "rpc",
    "search",
    "send",
    "session_claim",
    "team",
    "thread_run",
]
