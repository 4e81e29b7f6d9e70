"""Handrail: steps to hold on to, for coding agents. This module holds the version and nothing else."""

__version__ = "0.7.0"
