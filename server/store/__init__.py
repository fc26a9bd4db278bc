"""The only SQL (design §4)."""
