"""Run areas of the campaign, or one of its cases again.

python -m campaign --trials api=10000 models=1000 --workers 4 --out build/campaign
python -m campaign --again build/campaign/api-123.json
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

from campaign.running import run, trial

AREAS = {"signals": 200, "kills": 400, "clusters": 60, "forged": 5_000, "limits": 200}
AREAS |= {"api": 10_000, "files": 2_000, "models": 1_000}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", nargs="*", help="AREA or AREA=NUMBER; default: all areas")
    parser.add_argument("--seed", type=int, default=0, help="first seed")
    parser.add_argument("--workers", type=int, default=1, help="processes that run trials")
    parser.add_argument("--out", type=Path, default=Path("build/campaign"))
    parser.add_argument("--again", type=Path, help="a failing case to run again")
    options = parser.parse_args()
    if options.again:
        case = json.loads(options.again.read_text())
        outcome, told = trial(case["area"], case["seed"])
        print(f"{outcome}: {told}")
        raise SystemExit(outcome == "failed")
    named = [part.partition("=") for part in options.trials or AREAS]
    begins = options.seed
    wanted = {a: range(begins, begins + int(number or AREAS[a])) for a, _, number in named}
    begun = time.monotonic()
    results = run(wanted, options.out, options.workers)
    print("\n| area | trials | failures | minutes |\n|---|---|---|---|")
    for area, (count, failed, seconds) in results.items():
        print(f"| {area} | {count:,.0f} | {failed:,.0f} | {seconds / 60:.1f} |")
    minutes = (time.monotonic() - begun) / 60
    print(f"\nMinutes are those of all processes; {options.workers} took {minutes:.1f}.")
    raise SystemExit(any(failed for _, failed, _ in results.values()))


if __name__ == "__main__":
    main()
