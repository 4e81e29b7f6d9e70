"""The limits Handrail enforces at its edges, each named and explained: messages, replies, files, waiting.

The bounds of a format live with the format (`domain/guides/definition.py`), because they are part of its definition.
"""

from __future__ import annotations

MESSAGE_BYTES = 4 * 1024 * 1024
"""One wire message. A larger one gets an error reply and is never read into memory."""

MESSAGE_DEPTH = 128
"""Nesting depth of one wire message. Deeper JSON is hostile or broken; no tool argument comes near this."""

QUEUED_BYTES = 64 * 1024 * 1024
"""Accepted but unanswered input per connection; beyond it the server stops reading until it has caught up."""

WAIT_MS = 25_000
"""The longest any call waits for news: below the 30 s at which common clients give up."""

WAITING_CALLS = 32
"""Calls of one connection that may wait for news at once; any more queue in the lane."""

TOOLS_PER_PAGE = 200
"""Page size of `tools/list`. Larger than the whole catalog, because some clients never follow a cursor."""

GUIDE_FILE_BYTES = 1024 * 1024
"""One guide file. A guide is prose that a model reads step by step; a megabyte is already a mistake."""

GUIDE_FILES = 1000
"""Guide files read from one folder."""

TEMPLATE_FILE_BYTES = 1024 * 1024
"""One template file. It holds the texts of a plan; a megabyte is already a mistake."""

TEMPLATE_FILES = 200
"""Template files read from one folder: each call that needs templates reads them all."""

CONFIG_FILE_BYTES = 64 * 1024
"""The project's `config.toml`. A thousand lines; it is read at every start, and by every hook."""

TOML_BYTES = 1024 * 1024
"""Any TOML that is parsed. The parser takes two seconds for the worst megabyte."""

TOML_DEPTH = 32
"""Nesting depth of TOML: brackets in brackets, the parts of one key, and both together. Clients' files have four."""

CLIENT_FILE_BYTES = 4 * 1024 * 1024
"""A client's file in the user's own folder: some clients keep their whole state there."""

PROJECT_FILE_BYTES = 256 * 1024
"""A client's file, or one that instructs agents, in a project. Parsing takes two seconds for the worst of this size."""

GIT_FILE_BYTES = 64 * 1024
"""A small file of git's own: where a worktree's folder is, what is being rebased. It has a line or two."""

RECORD_FILE_BYTES = 64 * 1024 * 1024
"""A file in which Handrail keeps records outside the store. What is larger was not written by it."""

MANIFEST_FILE_BYTES = 512 * 1024 * 1024
"""The kept list of a folder's files. A million of them with long names take half of it."""

INDEX_FILE_BYTES = 2 * 1024 * 1024 * 1024
"""Git's index, which is copied before git may change it. Twenty million files."""

PATTERN_MEMORY_BYTES = 8 * 1024 * 1024
"""Memory one compiled pattern may take in the linear-time regex engine."""

SHUTDOWN_GRACE_S = 2.0
"""How long a running call may go on after SIGTERM or end of input before the process exits."""
