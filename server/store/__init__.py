"""The only SQL (design §3)."""
