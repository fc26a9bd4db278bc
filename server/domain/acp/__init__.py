"""The decisions of ACP messages (acp-canonical): no I/O, clock or randomness."""
