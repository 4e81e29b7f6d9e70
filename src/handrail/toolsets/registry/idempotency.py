"""Toolset `idempotency`: no tools of its own. While it is on, every tool that writes accepts `idempotency_key`, and a
call that is sent again gets the answer of the first (`surfaces/invocation.py`)."""

from __future__ import annotations

from typing import Any

from handrail.operation import Operation

OPERATIONS: tuple[Operation[Any, Any], ...] = ()
