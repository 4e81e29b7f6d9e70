"""Workspaces: working copies for parallel tasks, paths that agents keep for themselves, and what will not go together.
Records and rules; git is behind a port."""
