"""MCP over Streamable HTTP, as an ASGI application and a way to run it. Loaded only where HTTP is served.

`endpoint.py` is the application; `guard.py` decides who may speak, `headers.py` holds headers against bodies,
`streams.py` is what one reply travels on, `sessions.py` what a handshake client leaves behind, `running.py` the
server process.
"""
