"""Tests of handrail.domain.workspaces."""
