"""Earlier edits that a pull or switch carried over: merged into what it brought, as git does with `--autostash` and
`checkout --merge`. The merged content is the basis for whatever the task changed on top."""

from __future__ import annotations

import tempfile
from pathlib import Path

from handrail.outside.tracking.difference import TreeEntry
from handrail.outside.tracking.git_process import GitFailed, GitTimedOut
from handrail.outside.tracking.private_index import PrivateIndex

FILES = 50
"""How many files are merged for one comparison; beyond that, a carried-over edit counts as the task's."""


class Carrying:
    """Merges earlier edits into what came in."""

    def __init__(self, private: PrivateIndex) -> None:
        self._private = private
        self._left = FILES

    def merged(self, edited: TreeEntry | None, base: TreeEntry | None, arrived: TreeEntry | None) -> TreeEntry | None:
        """The edited file with the arrived change merged in; None if the two conflict."""
        if self._left <= 0 or edited is None or base is None or arrived is None:
            return None
        if not all(entry.is_stored and entry.mode.startswith("100") for entry in (edited, base, arrived)):
            return None
        self._left -= 1
        try:
            with tempfile.TemporaryDirectory(prefix="merge-", dir=self._private.state.folder) as folder:
                files = []
                for name, entry in (("edited", edited), ("base", base), ("arrived", arrived)):
                    file = Path(folder, name)
                    file.write_bytes(self._private.git("cat-file", "blob", entry.oid or ""))
                    files.append(str(file))
                content = self._private.git("merge-file", "-p", "-q", *files)
            oid = self._private.git("hash-object", "-w", "--stdin", given=content).decode().strip()
        except GitTimedOut:
            raise
        except GitFailed:
            return None
        return TreeEntry(arrived.mode if edited.mode == base.mode else edited.mode, oid)
