"""Traps that a repository can hold: programs that git would run. Each names where it is planted and which plain git
command steps on it; the program leaves a mark."""

from __future__ import annotations

import stat
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from tests.outside.tracking.playground import Playground, environment


class Canary(NamedTuple):
    """A trap, and the plain command that springs it (None: no command the engine is compared with does)."""

    name: str
    plant: Callable[[Playground, str], None]
    plain: list[str] | None
    environment: Mapping[str, str] = MappingProxyType({})


def program(repo: Playground, mark: Path) -> str:
    """A program that leaves a mark and behaves like a filter."""
    script = repo.top.parent / "trap.sh"
    script.write_text(f"#!/bin/sh\necho sprung >> '{mark}'\ntimeout 1 cat\n")
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return str(script)


def configured(key: str) -> Callable[[Playground, str], None]:
    def plant(repo: Playground, trap: str) -> None:
        repo.git("config", key, trap)
        repo.append("a.txt")

    return plant


def with_attribute(key: str, attribute: str, *, private: bool = False) -> Callable[[Playground, str], None]:
    def plant(repo: Playground, trap: str) -> None:
        if private:
            repo.write(".git/info/attributes", f"*.txt {attribute}\n")
        else:
            repo.write(".gitattributes", f"*.txt {attribute}\n")
            repo.commit("attributes")
        repo.git("config", key, trap)
        repo.write("a.txt", repo.read("a.txt").upper())  # of the same size: git has to read it to know

    return plant


def dirty(repo: Playground, trap: str) -> None:
    repo.append("a.txt")


def hook(name: str) -> Callable[[Playground, str], None]:
    def plant(repo: Playground, trap: str) -> None:
        repo.write(f".git/hooks/{name}", f"#!/bin/sh\nexec '{trap}'\n")
        repo.path(f".git/hooks/{name}").chmod(0o755)

    return plant


def included(repo: Playground, trap: str) -> None:
    repo.write(".git/evil", f'[core]\n\tfsmonitor = "{trap}"\n')
    repo.git("config", "include.path", "evil")


def in_worktree_config(repo: Playground, trap: str) -> None:
    repo.git("config", "extensions.worktreeConfig", "true")
    repo.git("config", "--worktree", "core.fsmonitor", trap)


def hooks_path(repo: Playground, trap: str) -> None:
    hook("post-index-change")(repo, trap)
    repo.path(".git/hooks").rename(repo.path("evil-hooks"))
    repo.git("config", "core.hooksPath", "evil-hooks")


def in_submodule(key: str, *, filtered: bool) -> Callable[[Playground, str], None]:
    def plant(repo: Playground, trap: str) -> None:
        inner = repo.at("lib")
        repo.git("clone", "-q", str(repo.top), str(inner.top))
        repo.git("-c", "advice.addEmbeddedRepo=false", "add", "lib")
        repo.commit("embedded as a gitlink", add=False)
        if filtered:
            inner.write(".git/info/attributes", "*.txt filter=evil\n")
            inner.write("a.txt", inner.read("a.txt").upper())
        inner.git("config", key, trap)

    return plant


def promisor(repo: Playground, trap: str) -> None:
    blob = repo.git("rev-parse", "HEAD:src/lib.py")
    repo.git("config", "core.repositoryFormatVersion", "1")
    repo.git("config", "extensions.partialClone", "evil")
    repo.git("config", "remote.evil.url", str(repo.top.parent / "nowhere"))
    repo.git("config", "remote.evil.promisor", "true")
    repo.git("config", "remote.evil.uploadpack", trap)
    repo.path(f".git/objects/{blob[:2]}/{blob[2:]}").unlink()
    repo.write("src/lib.py", "something else\n")


def with_equals_sign(repo: Playground, trap: str) -> None:
    with_attribute("filter.a=b.clean", "filter=a=b")(repo, trap)


def in_capitals(repo: Playground, trap: str) -> None:
    with_attribute("FILTER.Evil.CLEAN", "filter=Evil")(repo, trap)


def planted_bare(repo: Playground, trap: str) -> None:
    repo.git("init", "-q", "--bare", "planted")
    bare = repo.at("planted")
    bare.git("config", "core.bare", "false")
    bare.git("config", "core.worktree", "..")
    bare.git("config", "core.fsmonitor", trap)


STATUS, ADD, DIFF = ["status"], ["add", "-A"], ["diff", "HEAD"]

CANARIES = [
    Canary("fsmonitor", configured("core.fsmonitor"), STATUS),
    Canary("fsmonitor in an included file", included, STATUS),
    Canary("fsmonitor in the worktree's configuration", in_worktree_config, STATUS),
    Canary("hook post-index-change", hook("post-index-change"), ADD),
    Canary("hook reference-transaction", hook("reference-transaction"), ["update-ref", "refs/x/y", "HEAD"]),
    Canary("hooks elsewhere", hooks_path, ADD),
    Canary("clean filter", with_attribute("filter.evil.clean", "filter=evil"), STATUS),
    Canary("clean filter by private attributes", with_attribute("filter.evil.clean", "filter=evil", private=True), ADD),
    Canary("filter process", with_attribute("filter.evil.process", "filter=evil"), STATUS),
    Canary("filter with an equals sign in its name", with_equals_sign, ADD),
    Canary("filter in capitals", in_capitals, ADD),
    Canary("git-lfs of the repository's own", with_attribute("filter.lfs.clean", "filter=lfs"), STATUS),
    Canary("external diff", configured("diff.external"), DIFF),
    Canary("diff driver", with_attribute("diff.evil.command", "diff=evil"), DIFF),
    Canary("text conversion", with_attribute("diff.evil.textconv", "diff=evil"), DIFF),
    Canary("external diff of the environment", dirty, DIFF, {"GIT_EXTERNAL_DIFF": "{trap}"}),
    Canary("promisor remote", promisor, ["cat-file", "-p", "HEAD:src/lib.py"]),
    Canary("fsmonitor of a submodule", in_submodule("core.fsmonitor", filtered=False), STATUS),
    Canary("filter of a submodule", in_submodule("filter.evil.clean", filtered=True), STATUS),
    Canary("planted bare repository", planted_bare, ["-C", "planted", "status"]),
    Canary("pager", configured("core.pager"), ["-p", "log"]),
    Canary("alias that shadows nothing", configured("alias.status-x"), None),
    Canary("ssh command", configured("core.sshCommand"), ["ls-remote", "ssh://example.invalid/x"]),
    Canary("credential helper", configured("credential.helper"), None),
    Canary("editor", configured("core.editor"), ["commit", "--allow-empty"]),
    Canary("signing program", configured("gpg.program"), ["commit", "--allow-empty", "-S", "-m", "x"]),
    Canary("merge driver", with_attribute("merge.evil.driver", "merge=evil"), None),
    Canary("alternate refs command", configured("core.alternateRefsCommand"), None),
    Canary(
        "configuration in the environment",
        dirty,
        STATUS,
        {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "core.fsmonitor", "GIT_CONFIG_VALUE_0": "{trap}"},
    ),
]


def spring(repo: Playground, canary: Canary, trap: str) -> None:
    """Steps on the trap with plain git."""
    assert canary.plain is not None
    extra = {key: value.format(trap=trap) for key, value in canary.environment.items()}
    command = ["script", "-qec", "git -p log", "/dev/null"] if canary.name == "pager" else ["git", *canary.plain]
    subprocess.run(
        command,
        cwd=repo.top,
        env={**environment(), **extra},
        capture_output=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
