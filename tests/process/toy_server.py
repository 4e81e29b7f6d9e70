"""The toy server as a process, with a tool that prints and one that hangs."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Mapping
from typing import Any

from handrail.protocol.exchange import Exchange
from handrail.protocol.server import Server
from handrail.protocol.stdio import StdioLimits, serve_stdio
from tests.protocol.toy import ToyTools, toy_offer


class NoisyTools(ToyTools):
    """Tools that do what dependencies do: print, run children, take long."""

    def call(self, exchange: Exchange, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        if name == "print":
            print("a stray print")
            sys.stdout.flush()
            os.write(1, b"a stray write\n")
            subprocess.run(["sh", "-c", "echo a stray child; cat"], check=True)
        if name == "hang":
            threading.Event().wait(60)
        if name == "exit":
            sys.exit(3)
        if name == "unsendable":
            return {"content": [object()]}
        return super().call(exchange, "echo" if name in ("print", "hang") else name, arguments)


if __name__ == "__main__":
    limits = StdioLimits(message_bytes=65536, message_depth=64, queued_bytes=1 << 20, waiting_calls=2, grace_s=1.0)
    sys.exit(serve_stdio(Server(toy_offer(tools=NoisyTools())), limits))
