"""`cacp connect` and `cacp disconnect`: an agent of this git repository and a node."""

from cli.connect_options import AgentArgument, ChangeOptions, TargetOptions
from cli.options import grouped


@grouped
def connect(agent: AgentArgument, target: TargetOptions, change: ChangeOptions) -> None:
    """Connect an agent of this git repository to a node: key, MCP server, hooks, instructions.

    Makes a key in the node's database (--db), and keeps it outside of the repository in a file that
    only you can read. Adds the MCP server and the hooks to the agent's configuration in this
    repository, and a block to AGENTS.md. Then asks the agent whether it lists the server. Each
    change is shown before it is made; a second time there is nothing to change.

    Exit status: 0 connected, 1 refused, or the agent doesn't use the server yet, 2 wrong usage, 3
    the node can't be reached.

    \b
    Examples:
      cacp connect claude --dry-run
      cacp connect claude --db ~/node/data/cacp.db
      cacp connect codex --repo frontend-app --yes
      cacp connect cursor --url https://node.example.com --key-file ~/cursor.key
    """
    from cli.connect_steps import run_connect

    run_connect(agent, target, change)


@grouped
def disconnect(agent: AgentArgument, change: ChangeOptions) -> None:
    """Take back what `cacp connect` has done for an agent of this git repository.

    Files become again what they were; what you have changed in them since stays. The key that was
    made is revoked, unless the agent is still connected in another checkout of the repository.

    \b
    Examples:
      cacp disconnect claude --dry-run
      cacp disconnect claude --yes
    """
    from cli.connect_steps import run_disconnect

    run_disconnect(agent, change)
