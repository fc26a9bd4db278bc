"""Proves that an agent, or a node, keeps to its protocol (acpcomply). Imports schemas only."""
