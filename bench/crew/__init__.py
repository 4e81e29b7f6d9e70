"""Thirty agents at once: messages and claims beside bare writers and public servers, and what of it is lost."""
