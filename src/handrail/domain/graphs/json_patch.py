"""JSON Patch (RFC 6902), in full: add, remove, replace, move, copy and test over plain JSON values.

All or nothing: a patch that fails changes nothing, since the given value is never modified. Only containers on the path
to a changed place are copied, each once, so the cost depends on the size of the change, not of the value.

JSON Pointer (RFC 6901): parsing and building texts that name one place in a JSON value. Does not touch values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from handrail.kernel.errors import PatchFailed
from handrail.kernel.json_values import same_json

LONGEST = 4000
"""The most characters in a pointer."""


def parts_of(pointer: str) -> list[str]:
    """The names on the path from the whole value to the place; empty for the whole value itself."""
    if pointer and not pointer.startswith("/"):
        raise PatchFailed(
            f"{_shown(pointer)} does not begin with /", hint='"" is the whole value, "/a/b" a place in it'
        )
    if len(pointer) > LONGEST:
        raise PatchFailed(f"a pointer of {len(pointer)} characters", hint=f"{LONGEST} is the most")
    return [_unescaped(part) for part in pointer.split("/")[1:]]


def pointer_to(parts: Iterable[str]) -> str:
    """The pointer made of these names."""
    return "".join(f"/{part.replace('~', '~0').replace('/', '~1')}" for part in parts)


def _unescaped(part: str) -> str:
    rest = part.replace("~0", "").replace("~1", "")
    if "~" in rest:
        raise PatchFailed(f"{_shown(part)} has a ~ that stands for nothing", hint="~0 stands for ~, and ~1 for /")
    return part.replace("~1", "/").replace("~0", "~")


def _shown(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:80]}…"


MOST_OPERATIONS = 1000
_END = "-"
"""In an array, the position after the last element."""


def patched(value: Any, operations: Sequence[Mapping[str, Any]]) -> Any:
    """The value after all operations, applied in order. Raises PatchFailed, naming the operation that failed."""
    if len(operations) > MOST_OPERATIONS:
        raise PatchFailed(f"{len(operations)} operations", hint=f"{MOST_OPERATIONS} is the most of one patch")
    work = _Work(value)
    for index, operation in enumerate(operations):
        try:
            _apply(work, operation)
        except PatchFailed as refusal:
            raise PatchFailed(
                f"operation {index}: {refusal.message}", hint=refusal.hint, **{**refusal.details, "index": index}
            ) from None
    return work.value


def _apply(work: _Work, operation: Mapping[str, Any]) -> None:
    name = operation.get("op")
    act = _ACTS.get(name) if isinstance(name, str) else None
    if act is None:
        raise PatchFailed(f"op is {_brief(name)}", hint=f"op is one of {', '.join(_ACTS)}")
    act(work, operation)


class _Work:
    """A value being changed. Containers of the original are copied before they are changed."""

    def __init__(self, value: Any) -> None:
        self.value = value
        self._own: dict[int, Any] = {}
        """Containers that were copied here, by identity; kept alive so that no identity is reused."""

    def at(self, parts: Sequence[str]) -> Any:
        """The value at a place."""
        here = self.value
        for depth, part in enumerate(parts):
            here = _member(here, part, parts[: depth + 1])
        return here

    def container_of(self, parts: Sequence[str]) -> Any:
        """The container of a place, copied so that it may be changed."""
        here = self.value = self._owned(self.value)
        for depth, part in enumerate(parts[:-1]):
            inner = self._owned(_member(here, part, parts[: depth + 1]))
            if isinstance(here, list):
                here[int(part)] = inner
            else:
                here[part] = inner
            here = inner
        return here

    def _owned(self, container: Any) -> Any:
        if not isinstance(container, dict | list) or id(container) in self._own:
            return container
        copied = container.copy()
        self._own[id(copied)] = copied
        return copied


def _member(container: Any, part: str, way: Sequence[str]) -> Any:
    if isinstance(container, dict):
        if part in container:
            return container[part]
    elif isinstance(container, list):
        return container[_index(part, len(container) - 1, way)]
    raise PatchFailed(f"there is nothing at {pointer_to(way)}", hint="name a place that is there", path=pointer_to(way))


def _index(part: str, last: int, way: Sequence[str]) -> int:
    """The index that a part names, from 0 to `last`."""
    is_number = part.isascii() and part.isdigit() and (part == "0" or not part.startswith("0")) and len(part) <= 9
    if not is_number or int(part) > last:
        raise PatchFailed(
            f"{pointer_to(way)} is not a place in an array of {last + 1}",
            hint='count from 0, without leading zeros; "-" adds at the end',
            path=pointer_to(way),
        )
    return int(part)


def _put(work: _Work, parts: Sequence[str], value: Any) -> None:
    if not parts:
        work.value = value
        return
    container, name = work.container_of(parts), parts[-1]
    if isinstance(container, dict):
        container[name] = value
    elif isinstance(container, list):
        container.insert(len(container) if name == _END else _index(name, len(container), parts), value)
    else:
        raise PatchFailed(
            f"{pointer_to(parts[:-1])} is neither object nor array",
            hint="only those hold places",
            path=pointer_to(parts),
        )


def _take(work: _Work, parts: Sequence[str]) -> Any:
    taken = work.at(parts)
    if not parts:
        work.value = None
        return taken
    container = work.container_of(parts)
    if isinstance(container, dict):
        del container[parts[-1]]
    else:
        del container[int(parts[-1])]
    return taken


def _add(work: _Work, operation: Mapping[str, Any]) -> None:
    _put(work, _place(operation, "path"), _value(operation))


def _remove(work: _Work, operation: Mapping[str, Any]) -> None:
    _take(work, _place(operation, "path"))


def _replace(work: _Work, operation: Mapping[str, Any]) -> None:
    parts, value = _place(operation, "path"), _value(operation)
    work.at(parts)
    if not parts:
        work.value = value
        return
    container = work.container_of(parts)
    container[parts[-1] if isinstance(container, dict) else int(parts[-1])] = value


def _move(work: _Work, operation: Mapping[str, Any]) -> None:
    source, target = _place(operation, "from"), _place(operation, "path")
    if len(target) > len(source) and target[: len(source)] == source:
        raise PatchFailed(
            f"{pointer_to(source)} cannot be moved into itself", hint="copy it instead", path=pointer_to(target)
        )
    _put(work, target, _take(work, source))


def _copy(work: _Work, operation: Mapping[str, Any]) -> None:
    _put(work, _place(operation, "path"), _deep_copy(work.at(_place(operation, "from"))))


def _test(work: _Work, operation: Mapping[str, Any]) -> None:
    parts, wanted = _place(operation, "path"), _value(operation)
    found = work.at(parts)
    if not same_json(found, wanted):
        raise PatchFailed(
            f"{pointer_to(parts) or 'the whole value'} is {_brief(found)}, not {_brief(wanted)}",
            hint="read it anew and decide on what is there now",
            path=pointer_to(parts),
        )


_ACTS: dict[str, Callable[[_Work, Mapping[str, Any]], None]] = {
    "add": _add,
    "remove": _remove,
    "replace": _replace,
    "move": _move,
    "copy": _copy,
    "test": _test,
}


def _place(operation: Mapping[str, Any], member: str) -> list[str]:
    pointer = operation.get(member)
    if not isinstance(pointer, str):
        raise PatchFailed(f"{member} is missing", hint=f'{operation["op"]} needs {member}, such as "/nodes/a"')
    return parts_of(pointer)


def _value(operation: Mapping[str, Any]) -> Any:
    if "value" not in operation:
        raise PatchFailed("value is missing", hint=f"{operation['op']} needs a value; null is one")
    return operation["value"]


def _deep_copy(value: Any) -> Any:
    """A deep copy. A container that was already copied here would otherwise be changed in both places."""
    if isinstance(value, dict):
        return {key: _deep_copy(member) for key, member in value.items()}
    if isinstance(value, list):
        return [_deep_copy(member) for member in value]
    return value


def _brief(value: Any) -> str:
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= 80 else f"{text[:80]}…"


def merged(value: Any, patch: Any) -> Any:
    """The value with the patch applied. Neither is modified."""
    if not isinstance(patch, dict):
        return patch
    kept = value if isinstance(value, dict) else {}
    result = {key: member for key, member in kept.items() if key not in patch}
    laid = {key: merged(kept.get(key), member) for key, member in patch.items() if member is not None}
    # Existing members keep their order; new ones come last.
    return {key: (laid[key] if key in laid else result[key]) for key in kept if key in laid or key in result} | laid
