"""MCP over Streamable HTTP, as an ASGI application and a way to run it. Loaded only where HTTP is served.

`endpoint.py` is the application. `guard.py` holds the rules of who may call, `guard.py` applies them, `headers.py`
checks headers against bodies, `sessions.py` keeps handshake clients' state between requests, `delivery.py` runs
handlers and sends their replies, `reply.py` carries one reply, and `serve.py` runs the server process.
"""
