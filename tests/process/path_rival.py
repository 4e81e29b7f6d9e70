"""An agent that wants paths, a process of its own: `python -m tests.process.path_rival FOLDER ADDRESS NAME`.

It registers, says its id, and then asks for each path that comes as a line on stdin; every answer is a line of JSON on
stdout.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import msgspec

from tests.process.crew_lines import OwnLine

if __name__ == "__main__":
    folder, address, name = sys.argv[1:]
    settings = {"db": address, "toolsets": "agent,workspace", "heartbeat_ms": "600000"}
    line = OwnLine(Path(folder), settings, name)
    own = line.call("agent_register", {"name": name, "runtime": "custom"})["id"]
    os.write(1, msgspec.json.encode({"id": own}) + b"\n")
    for wanted in sys.stdin:
        answer = line.call("reserve_paths", {"agent_id": own, "paths": [wanted.strip()]})
        os.write(1, msgspec.json.encode(answer) + b"\n")
