"""acp/*: messages between agents (acp-canonical §11)."""
