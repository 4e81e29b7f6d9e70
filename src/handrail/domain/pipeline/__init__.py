"""Pipeline: from a request to merged work in phases. Flows as data, an engine that decides, parsers for the documents.
Pure: no clock, no disk, no database."""
