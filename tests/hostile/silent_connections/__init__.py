"""Connections that say nothing, or nothing to the end."""
