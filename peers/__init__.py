"""What a node knows of other nodes. Imports schemas only; the node injects what it needs."""
