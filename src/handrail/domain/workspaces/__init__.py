"""Workspaces: working copies for parallel tasks, paths that agents reserve, and foreseeable conflicts.
Records and rules; git is behind a port."""
