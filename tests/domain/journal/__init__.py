"""The journal: scope, changes, keeping."""
