"""What makes several replicas on one database one node (docs/packages/replicas.md)."""
