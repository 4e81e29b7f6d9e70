"""Tests of handrail.domain.board."""
