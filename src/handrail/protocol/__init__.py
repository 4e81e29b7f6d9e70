"""Protocol: JSON-RPC 2.0 and the Model Context Protocol, all five published revisions, both eras at once.

Knows no Handrail word: a `Server` is given an `Offer` (who it is, which tools, resources and prompts it has) and
answers messages; a transport moves lines in and out. Handlers are synchronous; concurrency belongs to the transport.
"""
