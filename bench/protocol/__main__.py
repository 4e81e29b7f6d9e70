"""`python -m bench.protocol`: measures every contestant in interleaved rounds and prints one table."""

from __future__ import annotations

import argparse
import os
import sys

from bench.protocol.contestants import BASELINE, CONTESTANTS, NotEqual
from bench.protocol.environments import pins, prepare_home
from bench.protocol.processes import Stuck
from bench.protocol.report import aims, table
from bench.protocol.rounds import WARM_UP_CALLS, run_rounds

FULL = {"rounds": 9, "calls": 2000}
QUICK = {"rounds": 3, "calls": 300}


def arguments() -> argparse.Namespace:
    names = [contestant.name for contestant in CONTESTANTS]
    parser = argparse.ArgumentParser(prog="python -m bench.protocol", description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help=f"{QUICK} in place of {FULL}: shows that it runs, not how fast"
    )
    parser.add_argument(
        "--only", action="append", metavar="NAME", choices=names, help=f"one of {names}; may be repeated"
    )
    parser.add_argument("--rounds", type=int, help="rounds, in place of the above")
    parser.add_argument("--calls", type=int, help="timed calls in each round, in place of the above")
    return parser.parse_args()


def main() -> int:
    options = arguments()
    effort = dict(QUICK if options.quick else FULL)
    effort.update({name: given for name in effort if (given := getattr(options, name)) is not None})
    chosen = [contestant for contestant in CONTESTANTS if not options.only or contestant.name in options.only]
    load_before = os.getloadavg()[0]
    try:
        results = run_rounds(chosen, prepare_home(), **effort)
    except (NotEqual, Stuck) as problem:
        print(f"bench.protocol: {problem}", file=sys.stderr)
        return 1
    load_after = os.getloadavg()[0]
    print(
        f"Medians of {effort['rounds']} rounds; {effort['calls']} timed calls each, after {WARM_UP_CALLS} to warm up."
    )
    print(f"{os.cpu_count()} cores, load {load_before:.1f} before and {load_after:.1f} after. x: against {BASELINE}.")
    print(f"Python {sys.version.split()[0]}, {', '.join(pins())}.\n")
    print("\n".join([*table(results), "", *aims(results)]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
