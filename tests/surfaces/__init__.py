"""Tests of handrail.surfaces."""
