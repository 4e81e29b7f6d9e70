"""Tests of handrail.domain.knowledge."""
