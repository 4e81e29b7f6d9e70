"""Tests of recovery, and the recorded samples they stand on."""
