"""Attacks, one folder each, against the real program: real processes, real repositories, real stores.

What a folder's tests hold is a sentence of `docs/security.md`, which names them. Rules that can be tried without a
process have their tests beside the code.
"""
