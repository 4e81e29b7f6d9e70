"""What a client's hooks run: `python -m handrail.hooks start|stop|edited|precompact`. Standard library and apsw only.

A client runs these at the start of a conversation, at its end and after every edit, so they load nothing else of
Handrail but the token estimate: no catalog, no wiring, no msgspec. They read the project's store, never write to it,
say nothing where there is nothing to say, and never stand in a client's way. Rules that the domain has too are held
against it by tests.
"""
