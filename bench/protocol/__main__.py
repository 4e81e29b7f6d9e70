"""`python -m bench.protocol`: measures every contestant in interleaved rounds and prints the tables."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from typing import Any

from bench.protocol import over_http, over_stdio
from bench.protocol.contestants import BASELINE, ON_HTTP, ON_STDIO, Contestant
from bench.protocol.conversation import NotEqual
from bench.protocol.environments import pins, prepare_home
from bench.protocol.report import http_report, stdio_report
from bench.protocol.rounds import Results, Transport, run_rounds
from bench.started import Stuck

FULL = {"rounds": 9, "calls": 2000}
QUICK = {"rounds": 3, "calls": 300}

Report = Callable[[Results[Any]], list[str]]
TRANSPORTS: dict[str, tuple[Transport[Any], tuple[Contestant, ...], int, Report]] = {
    "stdio": (
        Transport("stdio", over_stdio.prove, over_stdio.measure),
        ON_STDIO,
        over_stdio.WARM_UP_CALLS,
        stdio_report,
    ),
    "http": (Transport("http", over_http.prove, over_http.measure), ON_HTTP, over_http.WARM_UP_CALLS, http_report),
}


def arguments() -> argparse.Namespace:
    names = list(dict.fromkeys(contestant.name for contestant in (*ON_STDIO, *ON_HTTP)))
    parser = argparse.ArgumentParser(prog="python -m bench.protocol", description=__doc__)
    parser.add_argument("--transport", choices=(*TRANSPORTS, "both"), default="both", help="what to measure")
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
    home = prepare_home()
    print(f"{os.cpu_count()} cores, Python {sys.version.split()[0]}, {', '.join(pins())}. x: against {BASELINE}.")
    for name in TRANSPORTS if options.transport == "both" else (options.transport,):
        transport, contestants, warm_up, report = TRANSPORTS[name]
        chosen = [contestant for contestant in contestants if not options.only or contestant.name in options.only]
        load_before = os.getloadavg()[0]
        try:
            results = run_rounds(transport, chosen, home, **effort)
        except (NotEqual, Stuck) as problem:
            print(f"bench.protocol: {name}: {problem}", file=sys.stderr)
            return 1
        load_after = os.getloadavg()[0]
        counts = f"{effort['rounds']} rounds; {effort['calls']} timed calls each, after {warm_up} to warm up"
        print(f"\n{name}: medians of {counts}. Load {load_before:.1f} before, {load_after:.1f} after.\n")
        print("\n".join(report(results)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
