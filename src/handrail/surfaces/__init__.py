"""Surfaces: MCP, command line, docs. Functions of the catalog; no rule of the domain lives here."""
