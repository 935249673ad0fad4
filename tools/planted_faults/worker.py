"""Judge graphs in a process of its own, with the copy of irrun that comes first on the path.

The arguments are the file of the graphs, the seed, and the engine. Each line of the standard input is the number of a
graph, and each line of the standard output its verdict; the first one is the folder of this irrun.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import irrun
from irrun.engines.opening import open
from irrun.fuzz import Campaign
from planted_faults.graphs import load


def main() -> None:
    path, seed, side = sys.argv[1:]
    graphs = load(Path(path))
    print(json.dumps(str(Path(irrun.__file__).parent)), flush=True)
    with open(side) as engine:
        for line in sys.stdin:
            number = int(line)
            campaign = Campaign(int(seed), engine)
            finding = campaign.judge_graph(graphs[number], number)
            figures = campaign.figures
            verdict = {
                "outcome": next(iter(figures.outcomes), "invalid"),
                "explanations": sorted(figures.explained),
                "signature": "" if finding is None else finding.signature,
                "line": "" if finding is None else finding.line,
            }
            print(json.dumps(verdict), flush=True)


if __name__ == "__main__":
    main()
