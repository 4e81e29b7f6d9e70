"""Prompts: texts that people pick in their client, filled in with what is switched on and what exists."""
