"""Tests of handrail.domain.dry_run."""
