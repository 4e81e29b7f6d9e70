"""Tests of handrail.surfaces.report."""
