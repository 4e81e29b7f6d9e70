"""Tests of handrail.surfaces.cli.plans."""
