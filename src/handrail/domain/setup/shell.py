"""Shell completion: where each shell keeps its files, and our lines in them. Pure.

Fish looks for a separate file. Bash and zsh need a few lines in their start-up file, between two markers, so that
exactly those lines can be removed again.
"""

from __future__ import annotations

from typing import NamedTuple

SHELLS = ("bash", "zsh", "fish")
_BEGIN, _END = "# >>> handrail completion >>>", "# <<< handrail completion <<<"
_ZSH_READY = "(( $+functions[compdef] )) || { autoload -Uz compinit && compinit; }"


class ShellFiles(NamedTuple):
    """Where a shell's completion lives."""

    script: str
    """The completion itself; the whole file is ours."""
    begins_with: str | None
    """The shell's start-up file that loads it, if one has to."""


def shell_files(shell: str, home: str, environ: dict[str, str]) -> ShellFiles:
    if shell == "fish":
        config = environ.get("XDG_CONFIG_HOME") or f"{home}/.config"
        return ShellFiles(f"{config}/fish/completions/handrail.fish", None)
    folder = environ.get("ZDOTDIR") or home if shell == "zsh" else home
    return ShellFiles(f"{home}/.handrail/completion.{shell}", f"{folder}/.{shell}rc")


def with_lines(text: str | None, shell: str, script: str) -> str:
    """A shell's start-up file with the lines that load the script; earlier lines of ours are replaced."""
    before = without_lines(text) or ""
    if before and not before.endswith("\n"):
        before += "\n"
    ready = [_ZSH_READY] if shell == "zsh" else []
    quoted = script.replace("'", "'\\''")
    lines = (_BEGIN, *ready, f"[ -r '{quoted}' ] && . '{quoted}'", _END)
    return before + "".join(f"{line}\n" for line in lines)


def without_lines(text: str | None) -> str | None:
    """The same file without our lines. None if nothing else is in it; unchanged if our markers are incomplete."""
    if text is None:
        return None
    begin, end = text.find(f"{_BEGIN}\n"), text.find(f"{_END}\n")
    if begin < 0 or end < begin:
        return text
    return text[:begin] + text[end + len(_END) + 1 :] or None
