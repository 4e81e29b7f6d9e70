"""Toolset `repository`: plan.md's repositories, for one store over many."""

from __future__ import annotations

from pathlib import PurePath
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from handrail.domain.work.repository import Repository
from handrail.kernel.errors import InvalidParams
from handrail.kernel.records import Query, where
from handrail.operation import Call, Effect, Example, Operation
from handrail.toolsets.vocabulary import REPOSITORY


class RegisterRepository(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A repository by its path."""

    path: Annotated[str, Meta(min_length=1, max_length=4096, description="Absolute path")]
    name: Annotated[str, Meta(min_length=1, max_length=200)] | UnsetType = UNSET


class RegisteredRepository(msgspec.Struct, frozen=True):
    """The repository's id, the same for the same path."""

    id: str


class ListRepositories(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A page of repositories."""

    limit: Annotated[int, Meta(ge=1, le=500)] = 50
    offset: Annotated[int, Meta(ge=0, le=2**53)] = 0


class RepositoryPage(msgspec.Struct, frozen=True):
    """Repositories by path, and how many there are."""

    repositories: tuple[Repository, ...]
    total: int


class GetRepository(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which repository."""

    path: str


def repository_register(call: Call, request: RegisterRepository) -> RegisteredRepository:
    path = repository_at(call, request.path)
    known = call.work.select(Repository, where(path=path))
    if known:
        if request.name is not UNSET and request.name != known[0].name:
            call.work.record("repository.renamed", msgspec.structs.replace(known[0], name=request.name))
        return RegisteredRepository(known[0].id)
    repository = Repository(
        id=call.work.new_id("repo"),
        path=path,
        name=PurePath(path).name or path if request.name is UNSET else request.name,
        created_at=call.work.now_ms(),
    )
    call.work.record("repository.registered", repository)
    return RegisteredRepository(repository.id)


def repository_list(call: Call, request: ListRepositories) -> RepositoryPage:
    page = Query((), ("path",), request.limit, request.offset)
    return RepositoryPage(tuple(call.work.select(Repository, page)), call.work.count(Repository, Query()))


def repository_get(call: Call, request: GetRepository) -> Repository | None:
    if not PurePath(request.path).is_absolute():
        return None  # no repository has such a path
    found = call.work.select(Repository, where(path=call.here.root_of(request.path)))
    return found[0] if found else None


def repository_at(call: Call, path: str | UnsetType) -> str:
    """The repository that a call names by any path in it; if it names none, the one the call is made in."""
    if path is UNSET:
        return call.here.repository
    if not PurePath(path).is_absolute():
        raise InvalidParams(f"path must be absolute, not {path}", hint="give the whole path of the repository's root")
    return call.here.root_of(path)


_REGISTERED = (("repository_register", {"path": "/srv/shop", "name": "shop"}),)

OPERATIONS: tuple[Operation[Any, Any], ...] = (
    Operation(
        name="repository_register",
        toolset=REPOSITORY,
        effect=Effect.WRITE,
        idempotent=True,
        stored=True,
        summary="Registers a repository by its path",
        request=RegisterRepository,
        response=RegisteredRepository,
        handler=repository_register,
        examples=(
            Example(
                title="the same path is the same repository",
                given=_REGISTERED,
                request={"path": "/srv/shop"},
                response={"id": "repo_1"},
            ),
        ),
    ),
    Operation(
        name="repository_list",
        toolset=REPOSITORY,
        effect=Effect.READ,
        stored=True,
        summary="Lists the registered repositories",
        request=ListRepositories,
        response=RepositoryPage,
        handler=repository_list,
        examples=(
            Example(
                title="every repository is listed",
                given=_REGISTERED,
                request={},
                response={"repositories": [{"path": "/srv/shop", "name": "shop"}], "total": 1},
            ),
        ),
    ),
    Operation(
        name="repository_get",
        toolset=REPOSITORY,
        effect=Effect.READ,
        stored=True,
        summary="Finds a repository by its path",
        request=GetRepository,
        response=Repository,
        handler=repository_get,
        examples=(
            Example(
                title="a repository by its path",
                given=_REGISTERED,
                request={"path": "/srv/shop/"},
                response={"id": "repo_1", "path": "/srv/shop", "name": "shop"},
            ),
        ),
    ),
)
