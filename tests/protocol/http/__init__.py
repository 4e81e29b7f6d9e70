"""Streamable HTTP without a socket: who may speak, headers against bodies, streams, sessions, the application."""
