"""JSON-RPC 2.0 and the Model Context Protocol: all five published revisions, both eras at once.

Knows nothing about Handrail: a `Server` is given an `Offer` (its identity, tools, resources and prompts) and answers
messages; a transport moves lines in and out. Handlers are synchronous; concurrency belongs to the transport.
"""
