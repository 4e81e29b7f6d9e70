"""Tests of handrail.outside.worktrees."""
