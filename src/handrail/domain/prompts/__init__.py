"""Prompts: texts that people pick in their client, filled in with what is on and what is there."""
