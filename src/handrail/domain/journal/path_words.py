"""When a word names a part of a path: it matches whole words of one segment, in any usual spelling, in singular or
plural, or by an abbreviation from a fixed table. Never by substring or similarity: `api` does not name `capital`, nor
`auth` `author`.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence

ABBREVIATIONS: tuple[tuple[str, ...], ...] = (
    ("auth", "authn", "authz", "authenticate", "authentication", "authorize", "authorization", "oauth", "oauth2"),
    ("db", "database"),
    ("config", "configuration", "conf", "cfg", "setting"),
    ("doc", "documentation"),
    ("test", "testing", "spec"),
    ("admin", "administration"),
    ("app", "application"),
    ("dep", "dependency"),
    ("dev", "development"),
    ("env", "environment"),
    ("err", "error"),
    ("i18n", "internationalization", "internationalisation"),
    ("img", "image"),
    ("infra", "infrastructure"),
    ("l10n", "localization", "localisation"),
    ("lib", "library"),
    ("msg", "message"),
    ("nav", "navigation"),
    ("org", "organization", "organisation"),
    ("perf", "performance"),
    ("perm", "permission"),
    ("prod", "production"),
    ("repo", "repository"),
    ("util", "utility", "helper"),
)
"""Words in a row stand for each other, in singular and plural. Nothing outside the table is guessed."""

_ROW_OF = {word: number for number, row in enumerate(ABBREVIATIONS) for word in row}
MOST_LETTERS = 256
"""A longer text counts as having no words: no file system allows such names, and nobody declares such areas."""

_SHORTEST_SINGULAR = 3
_HISSING = ("s", "x", "z", "ch", "sh", "o")


class PathWords:
    """A text as words. `tied[i]` says that word i follows the previous one without a separator, as in `GitHub`."""

    __slots__ = ("tied", "words")

    def __init__(self, text: str) -> None:
        self.words: list[str] = []
        self.tied: list[bool] = []
        for run in _runs(unicodedata.normalize("NFC", text)) if len(text) <= MOST_LETTERS else ():
            for number, word in enumerate(_humps(run)):
                self.words.append(_folded(word))
                self.tied.append(number > 0)

    def whole(self) -> list[str]:
        """The words, with tied ones joined: `GitHub client` → github, client."""
        joined: list[str] = []
        for word, tied in zip(self.words, self.tied, strict=True):
            if tied:
                joined[-1] += word
            else:
                joined.append(word)
        return joined

    def has(self, wanted: Sequence[Spellings]) -> bool:
        """Whether the wanted words occur here side by side."""
        return bool(wanted) and any(self._matches_at(start, wanted) for start in range(len(self.words)))

    def _matches_at(self, start: int, wanted: Sequence[Spellings]) -> bool:
        at = start
        for spellings in wanted:
            taken = self._matched_words(at, spellings)
            if not taken:
                return False
            at += taken
        return True

    def _matched_words(self, at: int, wanted: Spellings) -> int:
        """How many words starting at `at` form the wanted one: more than one only if they are tied."""
        letters = ""
        for end in range(at, len(self.words)):
            if (end > at and not self.tied[end]) or len(letters) > wanted.longest:
                return 0
            letters += self.words[end]
            if letters in wanted.forms:
                return end - at + 1
        return 0


class Spellings:
    """Every case-folded form in which a word is recognised: itself, singular and plural, and its row in the table."""

    __slots__ = ("forms", "longest")

    def __init__(self, word: str) -> None:
        singulars = _singulars(word)
        forms = {word, *singulars, *_plurals(word)}
        for base in (word, *singulars):
            if (row := _ROW_OF.get(base)) is not None:
                forms.update(form for other in ABBREVIATIONS[row] for form in (other, *_plurals(other)))
        self.forms = frozenset(forms)
        self.longest = max(map(len, forms))


def _singulars(word: str) -> list[str]:
    """The words it may be the plural of, by regular English endings."""
    found = []
    if word.endswith("ies"):
        found.append(word[:-3] + "y")
    if word.endswith("es") and word[:-2].endswith(_HISSING):
        found.append(word[:-2])
    if word.endswith("s") and not word.endswith("ss"):
        found.append(word[:-1])
    return [form for form in found if _has_plural(form)]


def _plurals(word: str) -> list[str]:
    if not _has_plural(word):
        return []
    found = [] if word.endswith("s") else [f"{word}s"]
    if word.endswith(_HISSING):
        found.append(f"{word}es")
    if word.endswith("y"):
        found.append(f"{word[:-1]}ies")
    return found


def _has_plural(word: str) -> bool:
    """Whether the word is long enough to have a plural: anything shorter is letters that happen to precede an s."""
    return len(word) >= _SHORTEST_SINGULAR or word in _ROW_OF


def _folded(word: str) -> str:
    return unicodedata.normalize("NFC", word.casefold())


def _runs(text: str) -> Iterator[str]:
    """The longest runs of letters, digits and their combining marks."""
    start = -1
    for at, letter in enumerate(text):
        if letter.isalnum() or unicodedata.category(letter)[0] == "M":
            if start < 0:
                start = at
        elif start >= 0:
            yield text[start:at]
            start = -1
    if start >= 0:
        yield text[start:]


def _humps(run: str) -> Iterator[str]:
    """`OAuthCallback` → O, Auth, Callback; `HTTPServer2` → HTTP, Server2."""
    start = 0
    for at in range(1, len(run)):
        before, here = run[at - 1], run[at]
        ends_a_word = here.isupper() and not before.isupper()
        ends_capitals = here.isupper() and before.isupper() and at + 1 < len(run) and run[at + 1].islower()
        if ends_a_word or ends_capitals:
            yield run[start:at]
            start = at
    yield run[start:]
