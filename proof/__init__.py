"""What runs an agreement: runners, and what they leave. It imports nothing of a node."""
