"""What is written in the demo: the files of its repository, the changes its agents make, the documents of its run."""

from __future__ import annotations

CONFIG = """# Only a person answers gates here.
approvals = "human"
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
