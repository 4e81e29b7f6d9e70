"""Prompts as data."""
