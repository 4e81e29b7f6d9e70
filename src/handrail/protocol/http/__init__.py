"""MCP over Streamable HTTP, as an ASGI application and a way to run it. Loaded only where HTTP is served.

`endpoint.py` is the application; `guard.py` says who may speak, `admission.py` lets them in, `headers.py` holds headers
against bodies, `sessions.py` is what a handshake client leaves behind, `delivery.py` runs handlers and carries their
replies, `streams.py` is what one reply travels on, `running.py` the server process.
"""
