"""Run areas of the campaign, or one of its cases again.

python -m campaign --trials api=10000 models=1000 --out build/campaign
python -m campaign --again build/campaign/api-123.json
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

from campaign.running import run_area, trial

AREAS = {"api": 10_000, "files": 2_000, "models": 1_000, "forged": 5_000, "limits": 200}
AREAS |= {"signals": 200, "kills": 400, "clusters": 60}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", nargs="*", help="AREA or AREA=NUMBER; default: all areas")
    parser.add_argument("--seed", type=int, default=0, help="first seed")
    parser.add_argument("--out", type=Path, default=Path("build/campaign"))
    parser.add_argument("--again", type=Path, help="a failing case to run again")
    options = parser.parse_args()
    if options.again:
        case = json.loads(options.again.read_text())
        outcome, told = trial(case["area"], case["seed"])
        print(f"{outcome}: {told}")
        raise SystemExit(outcome == "failed")
    named = [part.partition("=") for part in options.trials or AREAS]
    wanted = {area: int(number or AREAS[area]) for area, _, number in named}
    results = {}
    for area, number in wanted.items():
        begun = time.monotonic()
        seeds = range(options.seed, options.seed + number)
        count, failures = run_area(area, seeds, options.out)
        results[area] = count, len(failures), time.monotonic() - begun
    print("\n| area | trials | failures | minutes |\n|---|---|---|---|")
    for area, (count, failed, seconds) in results.items():
        print(f"| {area} | {count:,} | {failed:,} | {seconds / 60:.1f} |")
    raise SystemExit(any(failed for _, failed, _ in results.values()))


if __name__ == "__main__":
    main()
