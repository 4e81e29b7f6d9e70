"""A PostgreSQL that goes away and comes back under servers that agents are using."""
