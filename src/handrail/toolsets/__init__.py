"""Toolsets: the vocabularies. One module per document or category, each a tuple of `Operation` records over the domain.

A handler reads like the sentence in its document and contains no rules of its own.
"""
