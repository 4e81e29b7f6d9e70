"""Tests of handrail.kernel."""
