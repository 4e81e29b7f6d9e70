"""Tests of handrail.surfaces.cli."""
