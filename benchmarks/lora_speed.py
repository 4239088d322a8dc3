"""LoRA beside PEFT: time and peak memory of a step.

    python benchmarks/lora_speed.py --peer_python=.venv-peer/bin/python

As `fusion_speed.py`, with products of the given ranks on query and value.
"""

import argparse

from fusion_speed import measure
from fusion_speed import report


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--peer_python", default=".venv-peer/bin/python")
    parser.add_argument("--shapes", default="minilm,bert_base")
    parser.add_argument("--ranks", default="8,64")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--steps", type=int, default=2)
    arguments = parser.parse_args()
    print(
        "| encoder | rank | | ours, s | theirs, s | ratio | middle half "
        "| ours, GB | theirs, GB |\n|---|---|---|---|---|---|---|---|---|"
    )
    for shape in arguments.shapes.split(","):
        for rank in map(int, arguments.ranks.split(",")):
            options = [f"--shape={shape}", f"--lora_rank={rank}"]
            report(shape, rank, *measure(options, arguments))


if __name__ == "__main__":
    main()
