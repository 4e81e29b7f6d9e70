"""Tests of handrail.surfaces.cli.lookup."""
