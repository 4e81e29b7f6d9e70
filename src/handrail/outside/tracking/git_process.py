"""Runs git in untrusted repositories: no program that the repository names is ever started.

The user's own configuration (system and global) stays in force: without it line endings, excluded files and trusted
folders would be wrong. What comes with the repository may be hostile. Settings that name a program are overridden on
every call, through the environment, because a key may itself contain `=` and `-c` would cut it there. The environment
is built from a short list of names, so that none of the caller's GIT_* or LD_* variables leak in. Every call has a
deadline, and its output a limit. What a repository configures for itself is found by `discovery.py` and passed in as
`overrides`.
"""

from __future__ import annotations

import contextlib
import functools
import os
import selectors
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence

OUTPUT_BYTES = 512 * 1024 * 1024
"""How much one call may print. A list of a million file names is a tenth of it."""

KEPT_ENVIRONMENT = (
    "APPDATA",
    "HOME",
    "HOMEDRIVE",
    "HOMEPATH",
    "LOGNAME",
    "PATH",
    "SYSTEMROOT",
    "TEMP",
    "TMP",
    "TMPDIR",
    "USER",
    "USERPROFILE",
    "XDG_CONFIG_HOME",
)

FORCED_ENVIRONMENT = {
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_ASKPASS": "false",
    "GIT_EDITOR": "false",
    "GIT_GRAFT_FILE": os.devnull,
    "GIT_LFS_SKIP_SMUDGE": "1",
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
    "SSH_ASKPASS": "false",
}

FORCED_SETTINGS = {
    "advice.detachedHead": "false",
    "color.ui": "false",
    "commit.gpgSign": "false",
    "core.abbrev": "no",
    "core.alternateRefsCommand": "",
    "core.askPass": "",
    "core.checkStat": "default",  # like ignoreStat and trustctime: what spares git a look makes it blind
    "core.editor": "false",
    "core.fsmonitor": "false",  # may be a program, run by whatever reads the index
    "core.fsync": "none",  # private data can be made again
    "core.gitProxy": "",
    "core.hooksPath": os.devnull,
    "core.ignoreStat": "false",
    "core.logAllRefUpdates": "false",
    "core.pager": "cat",
    "core.quotePath": "false",
    "core.splitIndex": "false",
    "core.sshCommand": "false",
    "core.trustctime": "true",
    "credential.helper": "",
    "diff.external": "",
    "diff.ignoreSubmodules": "none",
    "diff.noprefix": "false",
    "diff.orderFile": os.devnull,  # an empty value makes every diff fail
    "diff.relative": "false",
    "diff.renameLimit": "1000",
    "diff.trustExitCode": "false",
    "fetch.recurseSubmodules": "false",
    "gc.auto": "0",
    "gpg.program": "false",
    "log.showSignature": "false",
    "maintenance.auto": "false",
    "protocol.allow": "never",  # a missing object is never fetched from wherever the repository says
    "safe.bareRepository": "explicit",  # a bare repository planted in the tree is no repository
    "status.renames": "false",
    "status.submoduleSummary": "false",
    "submodule.recurse": "false",
}


class GitFailed(Exception):  # noqa: N818 - the engine gives a partial answer; it does not crash
    """Git ended with an error."""

    def __init__(self, arguments: Sequence[str], code: int, complaint: bytes) -> None:
        self.code = code
        self.complaint = complaint.decode("utf-8", "replace").strip()[-400:]
        command = next((word for word in arguments if not word.startswith("-") and "=" not in word), "")
        super().__init__(f"git {command} ended with {code}: {self.complaint}")


class GitTimedOut(GitFailed):
    """Git was stopped: it took too long, or said too much."""


class Deadline:
    """The moment by which everything must be done."""

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds

    def left(self) -> float:
        return self._end - time.monotonic()


@functools.cache
def git_program() -> str | None:
    """The absolute path of git, looked up once: never relative to a folder that somebody else may have filled."""
    found = shutil.which("git")
    return os.path.realpath(found) if found and os.path.isabs(os.path.realpath(found)) else None  # noqa: PTH117


class GitCall:
    """One running git process; `output` waits for it. Several may run side by side."""

    def __init__(
        self,
        arguments: Sequence[str],
        *,
        folder: str,
        deadline: Deadline,
        overrides: Mapping[str, str] | None = None,
        environment: Mapping[str, str] | None = None,
        given: bytes | None = None,
        held: Sequence[int] = (),
    ) -> None:
        """`overrides` are added to the forced settings and win over them; `held` are descriptors to inherit."""
        program = git_program()
        if program is None:
            raise GitFailed(arguments, 127, b"there is no git on this machine")
        self._arguments = arguments
        self._deadline = deadline
        self._given = given
        self._process = subprocess.Popen(  # noqa: S603 - an argument list, and git by its absolute path
            [program, "--no-pager", *arguments],
            cwd=folder,
            env={**_environment({**FORCED_SETTINGS, **(overrides or {})}), **(environment or {})},
            stdin=subprocess.PIPE if given else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,  # so that whatever git starts can be ended with it
            pass_fds=tuple(held),
        )

    def output(self, *, allowed: Sequence[int] = (0,)) -> bytes:
        """Everything it printed, once it has ended."""
        return b"".join(self.chunks(allowed=allowed))

    def chunks(self, *, allowed: Sequence[int] = (0,)) -> Iterator[bytes]:
        """Its output as it is printed. Raises GitFailed at the end, GitTimedOut as soon as it exceeds its time or
        output."""
        complaint = bytearray()
        try:
            yield from self._exchange(complaint)
            code = self._process.wait(max(0.01, self._deadline.left()))
        except (subprocess.TimeoutExpired, TimeoutError):
            raise GitTimedOut(self._arguments, -9, b"it took too long or printed too much") from None
        finally:
            self.stop()
        if code not in allowed:
            raise GitFailed(self._arguments, code, bytes(complaint))

    def stop(self) -> None:
        """Ends it, if it is running, along with everything it has started."""
        if self._process.poll() is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.kill()
            self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()

    def _exchange(self, complaint: bytearray) -> Iterator[bytes]:
        """Feeds and reads all three pipes at once; raises TimeoutError when the time or output limit is reached."""
        process, room = self._process, OUTPUT_BYTES
        rest = memoryview(self._given or b"")
        with selectors.DefaultSelector() as selector:
            for pipe in (process.stdout, process.stderr):
                assert pipe is not None
                selector.register(pipe, selectors.EVENT_READ)
            if process.stdin is not None:
                os.set_blocking(process.stdin.fileno(), False)
                selector.register(process.stdin, selectors.EVENT_WRITE)
            while selector.get_map():
                left = self._deadline.left()
                if left <= 0 or room < 0:
                    raise TimeoutError
                for key, _ in selector.select(left):
                    if key.fileobj is process.stdin:
                        rest = self._feed(rest)
                        if not rest:
                            selector.unregister(key.fileobj)
                            process.stdin.close()
                        continue
                    chunk = os.read(key.fd, 1 << 18)
                    if not chunk:
                        selector.unregister(key.fileobj)
                    elif key.fileobj is process.stdout:
                        room -= len(chunk)
                        yield chunk
                    else:
                        complaint += chunk[: max(0, 65536 - len(complaint))]

    def _feed(self, rest: memoryview) -> memoryview:
        assert self._process.stdin is not None
        try:
            return rest[os.write(self._process.stdin.fileno(), rest[: 1 << 16]) :]
        except BlockingIOError:
            return rest
        except BrokenPipeError:  # it has ended, and its exit code says why
            return rest[:0]


def _environment(settings: Mapping[str, str]) -> dict[str, str]:
    environment = {name: os.environ[name] for name in KEPT_ENVIRONMENT if name in os.environ}
    environment |= FORCED_ENVIRONMENT
    environment["GIT_CONFIG_COUNT"] = str(len(settings))
    for number, (key, value) in enumerate(settings.items()):
        environment[f"GIT_CONFIG_KEY_{number}"] = key
        environment[f"GIT_CONFIG_VALUE_{number}"] = value
    return environment
