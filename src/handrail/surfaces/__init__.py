"""Surfaces: MCP, the command line, the page, reports and generated docs. Functions of the catalog and of read models;
no domain rules live here."""
