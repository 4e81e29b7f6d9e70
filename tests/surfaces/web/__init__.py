"""Tests of handrail.surfaces.mcp."""
