"""Tests of handrail.surfaces.cli.decide."""
