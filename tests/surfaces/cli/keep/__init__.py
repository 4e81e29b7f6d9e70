"""Tests of handrail.surfaces.cli.keep."""
