"""What a client's hooks run: `python -m handrail.hooks start|stop|edited|precompact`. Standard library and apsw only.

A client runs these at the start of a conversation, at its end and after every edit, so the only other part of Handrail
they load is the token estimate: no catalog, no wiring, no msgspec. They read the project's store, never write to it,
say nothing if there is nothing to say, and never get in a client's way. Tests compare the rules they share with the
domain.
"""
