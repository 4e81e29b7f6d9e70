"""Tests of handrail.surfaces.cli.see."""
