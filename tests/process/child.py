"""A child process that does not outlive the block it was started for."""

from __future__ import annotations

import contextlib
import subprocess
from types import TracebackType
from typing import Any, TypeVar

ChildT = TypeVar("ChildT", bound="Child")


class Child:
    """Ends its process, however the block ends, and then what it read it with."""

    process: subprocess.Popen[Any]

    def __enter__(self: ChildT) -> ChildT:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.close()

    def close(self) -> None:
        """Closes the pipes to a process that has ended."""
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):  # what it never read
                    stream.close()
