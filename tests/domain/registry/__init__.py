"""Tests of handrail.domain.registry."""
