"""Tests of handrail.domain.graphs."""
