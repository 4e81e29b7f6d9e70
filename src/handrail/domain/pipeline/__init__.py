"""Pipeline: from a request to merged work in phases. Flows as data, an engine that decides, documents that are read.
Pure: no clock, no disk, no database."""
