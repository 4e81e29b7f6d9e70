"""The texts of the demo: the files of its repository, the changes its agents make, the documents of its run."""

from __future__ import annotations

CONFIG = """# Only a person answers gates here.
approvals = "human"
# The agents of a demo that is kept say no more; for an hour they still count as present.
heartbeat_ms = 1200000
"""
START = {
    ".gitignore": ".handrail/\n.specs/\n",
    ".handrail/config.toml": CONFIG,
    "README.md": "# words\n\nCounts words.\n",
    "words/__init__.py": '"""Counts words."""\n',
}

PLAN = {
    "summary": "Count the words of a file",
    "approach": "Three parts side by side, then one that joins them",
    "tasks": [
        {
            "name": "parse the file",
            "description": "Cut a text into words",
            "sequence": 1,
            "files_likely_affected": ["words/parse.py"],
        },
        {
            "name": "count the words",
            "description": "Count each of them",
            "sequence": 1,
            "files_likely_affected": ["words/count.py"],
        },
        {
            "name": "write the usage",
            "description": "Say how it is used",
            "sequence": 1,
            "files_likely_affected": ["README.md"],
        },
        {
            "name": "join them",
            "description": "A command that does it all",
            "sequence": 2,
            "depends_on": ["parse the file", "count the words"],
            "files_likely_affected": ["words/__main__.py"],
        },
    ],
}

PARSE = {
    "words/parse.py": (
        '"""Cuts a text into words."""\n\n\ndef parse(text: str) -> list[str]:\n    return text.lower().split()\n'
    ),
    "README.md": "# words\n\nCuts a text into words and counts them.\n",
}
TAKEN_BACK = {"README.md": START["README.md"]}
COUNT = {
    "words/count.py": (
        '"""Counts words."""\n\nfrom collections import Counter\n\n\n'
        "def count(words: list[str]) -> Counter[str]:\n"
        "    return Counter(words)\n"
    ),
}
USAGE = {"README.md": "# words\n\nCounts the words of a file: `python -m words FILE`.\n"}
JOIN = {
    "words/__main__.py": (
        '"""python -m words FILE"""\n\nimport pathlib\nimport sys\n\n'
        "from words.count import count\nfrom words.parse import parse\n\n"
        "for word, times in count(parse(pathlib.Path(sys.argv[1]).read_text())).most_common():\n"
        "    print(times, word)\n"
    ),
}

REQUEST = "Print the counts as JSON too --nopr --effort=M --until=checkpoint-a"
FIRST_DESIGN = """# Design: counts as JSON

## The change
`--json` prints one object, from word to count.
"""
SECOND_DESIGN = """# Design: counts as JSON

## The change
`--json` prints one object, from word to count, the most frequent first.

## Tests
An empty file prints `{}`. Letters beyond ASCII come out as they are.
"""
NEXT_DESIGN = """# Design: counts as JSON

## The change
`--json` prints one object, from word to count, the most frequent first.
Without `--json` nothing changes.

## Tests
An empty file prints `{}`. Letters beyond ASCII come out as they are.
The output without `--json` is compared with what it was.

## You said
"""
ANALYSIS = "# Analysis\n\nThe counts are printed in one place, `words/__main__.py`.\n"
INVESTIGATION = "# Investigation\n\nA Counter goes into `json.dumps` as it is.\n"
REVISE = "# Review\n\n## Verdict: REVISE\n\n## Findings\n- [MAJOR] Nothing says how it is tested.\n"
APPROVE = "# Review\n\n## Verdict: APPROVE\n\nIt says what is printed, and how that is tested.\n"

# -- what comes next --------------------------------------------------------------------------------------------------

NEXT_PLAN = {
    "summary": "Count words in every language",
    "approach": "Read and count side by side, then show it, and prove it",
    "tasks": [
        {"name": "read any encoding", "parallel_group": "read", "files_likely_affected": ["words/reading.py"]},
        {"name": "fold letters", "parallel_group": "read", "files_likely_affected": ["words/folding.py"]},
        {"name": "cut without blanks", "parallel_group": "read", "estimated_complexity": "high"},
        {"name": "count by language", "parallel_group": "count", "depends_on": ["read any encoding", "fold letters"]},
        {"name": "leave out stop words", "parallel_group": "count", "depends_on": ["count by language"]},
        {"name": "add up many files", "parallel_group": "count", "depends_on": ["count by language"]},
        {"name": "print a table", "parallel_group": "show", "depends_on": ["add up many files"]},
        {"name": "draw a chart", "parallel_group": "show", "depends_on": ["add up many files"]},
        {"name": "fuzz the reader", "parallel_group": "prove", "depends_on": ["read any encoding"]},
        {
            "name": "measure a gigabyte",
            "parallel_group": "prove",
            "depends_on": ["add up many files", "cut without blanks"],
        },
        {"name": "write it down", "parallel_group": "prove", "depends_on": ["print a table", "draw a chart"]},
        {"name": "release it", "depends_on": ["write it down", "measure a gigabyte", "fuzz the reader"]},
    ],
}
READING = {
    "words/reading.py": (
        '"""Reads a text in whatever encoding it has."""\n\nfrom pathlib import Path\n\n'
        'TRIED = ("utf-8", "utf-16", "latin-1")\n\n\n'
        "def read(path: Path) -> str:\n"
        "    data = path.read_bytes()\n"
        "    for encoding in TRIED:\n"
        "        try:\n"
        "            return data.decode(encoding)\n"
        "        except UnicodeError:\n"
        "            continue\n"
        '    return data.decode("utf-8", "replace")\n'
    ),
    "words/parse.py": (
        '"""Cuts a text into words."""\n\nfrom words.folding import fold\n\n\n'
        "def parse(text: str) -> list[str]:\n    return fold(text).split()\n"
    ),
}
FOLDING = {
    "words/folding.py": (
        '"""Letters that count as the same."""\n\nimport unicodedata\n\n\n'
        "def fold(text: str) -> str:\n"
        '    return unicodedata.normalize("NFKC", text).casefold()\n'
    ),
}
LANGUAGES = {
    "words/languages.py": (
        '"""Counts words, a language at a time."""\n\nfrom collections import Counter\n\n\n'
        "def count(words: dict[str, list[str]]) -> dict[str, Counter[str]]:\n"
        "    return {language: Counter(found) for language, found in words.items()}\n"
    ),
}
NEXT_REQUEST = "Guess the language of a text --nopr --effort=M --until=checkpoint-a"
FIRST_GUESS = """# Design: guess the language

## The change
`words/guess.py` counts the letters of a text and compares them with a table.
"""
SECOND_GUESS = """# Design: guess the language

## The change
`words/guess.py` compares the three-letter runs of a text with a table of those of each language, and gives the nearest
with how sure it is.

| part | where | why |
|---|---|---|
| table | `words/runs.json` | made once from texts that anybody may use |
| guess | `words/guess.py` | a sum over the runs; no model, no network |

## What is left open
1. A text of fewer than twenty letters is not guessed: it is counted as *unknown*.
2. Languages that are not in the table are taken for their nearest neighbour.

## Tests
- Each language of the table is guessed from a text that the table was not made from.
- An empty text is unknown.
"""
