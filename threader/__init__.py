"""Runs agent CLIs over a manifest: verified, healed, resumable (agent-threader-v2)."""
