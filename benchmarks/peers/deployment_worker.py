"""Runs a Hugging Face encoder in PyTorch on command, to be timed.

    python benchmarks/peers/deployment_worker.py <folder of an encoder> 32 128

`benchmarks/deployment_speed.py` drives it through JSON lines. Needs torch and
transformers.
"""

import json
import sys
import time

import torch
import transformers


def main():
    output, sys.stdout = sys.stdout, sys.stderr
    load = transformers.AutoModel.from_pretrained
    load(sys.argv[1])  # Imports do not count.
    started = time.perf_counter()
    model = load(sys.argv[1]).eval()
    loaded = time.perf_counter() - started
    generator = torch.Generator().manual_seed(0)
    batches = {}
    short, long = map(int, sys.argv[2:])
    # As in benchmarks/deployment_worker.py.
    shapes = {"one": (1, short), "short": (32, short), "long": (32, long)}
    for what, shape in shapes.items():
        size = model.config.vocab_size
        ids = torch.randint(5, size, shape, generator=generator)
        mask = torch.ones_like(ids)
        batches[what] = {"input_ids": ids, "attention_mask": mask}
    print(json.dumps({"load": loaded}), file=output, flush=True)
    for line in sys.stdin:
        command = json.loads(line)
        started = time.perf_counter()
        with torch.inference_mode():
            for _ in range(command["steps"]):
                model(**batches[command["do"]])
        answer = {"seconds": time.perf_counter() - started}
        print(json.dumps(answer), file=output, flush=True)


if __name__ == "__main__":
    main()
