"""`python -m bench.page`: what the page costs a browser. How its drawings compare is `python -m bench.page.layout`."""

from __future__ import annotations

import argparse

from bench.page import paint


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.page", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one small plan, 2 rounds: shows that it runs")
    parser.add_argument("--rounds", type=int, help=f"rounds, in place of {paint.ROUNDS}")
    parser.add_argument("--tasks", type=int, action="append", help="a plan of so many tasks; may be repeated")
    given = parser.parse_args()
    sizes = tuple(given.tasks) if given.tasks else paint.QUICK_SIZES if given.quick else paint.SIZES
    paint.run(sizes, given.rounds or (paint.QUICK_ROUNDS if given.quick else paint.ROUNDS))


if __name__ == "__main__":
    main()
