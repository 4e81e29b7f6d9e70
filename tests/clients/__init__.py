"""Clients we did not write: the official MCP clients start `handrail serve` and finish a guide."""
