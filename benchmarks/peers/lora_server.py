"""Serves LoRA adapters with PEFT, in one of two ways; see `serving_peers.py`.

    python benchmarks/peers/lora_server.py --encoder=<folder> \
        --adapters=<folder> --way=adapter_names --port=8600

- `adapter_names`: a batch mixes adapters, and the call names that of each text.
- `set_adapter`: the adapter of each text in turn is made the active one, and
  answers all of its texts in the batch.

PEFT has no heads of many adapters in one batch. Here they are one matrix of all
adapters, and a text is multiplied by the rows of its own.
"""

import argparse
import os
from pathlib import Path
import sys

os.environ.setdefault("HF_HUB_OFFLINE", "1")
sys.path.insert(0, str(Path(__file__).parents[1]))

import peft
from safetensors.torch import load_file
import small_server
import torch
import transformers

WAYS = ("adapter_names", "set_adapter")


class Peer:
    """An encoder with the LoRA adapters of a folder, and their heads.

    Args:
        encoder: Folder of a Hugging Face BERT.
        folder: Path of a folder with an adapter of PEFT in each folder, and its
            head in `head.safetensors`.
    """

    def __init__(self, encoder, folder):
        self._tokenizer = transformers.AutoTokenizer.from_pretrained(encoder)
        base = transformers.AutoModel.from_pretrained(
            encoder, add_pooling_layer=False, attn_implementation="sdpa"
        )
        paths = sorted(Path(folder).iterdir())
        self._model = peft.PeftModel.from_pretrained(
            base, paths[0], paths[0].name
        )
        for path in paths[1:]:
            self._model.load_adapter(path, path.name, low_cpu_mem_usage=True)
        self._model.eval()
        self._places = {path.name: i for i, path in enumerate(paths)}
        found = [load_file(path / "head.safetensors") for path in paths]
        self._kernels = torch.stack([one["head/kernel"] for one in found])
        self._biases = torch.stack([one["head/bias"] for one in found])

    def adapter_names(self, asked):
        """Answers a batch in one call; see `small_server.Batches`."""
        names = [name for name, _ in asked]
        return self._answer(asked, adapter_names=names)

    def set_adapter(self, asked):
        """Answers a batch in a call for each adapter."""
        answers = [0.0] * len(asked)
        for name, places in small_server.by_name(asked).items():
            self._model.base_model.set_adapter(name, inference_mode=True)
            found = self._answer([asked[place] for place in places])
            for place, answer in zip(places, found, strict=True):
                answers[place] = answer
        return answers

    def _answer(self, asked, **options):
        inputs = self._tokenizer(
            [text for _, text in asked], return_tensors="pt", padding=True
        )
        places = torch.tensor([self._places[name] for name, _ in asked])
        with torch.inference_mode():
            hidden = self._model(**inputs, **options).last_hidden_state[:, 0]
            logits = torch.einsum("bd,bdc->bc", hidden, self._kernels[places])
            logits = logits + self._biases[places]
            return logits.softmax(-1)[:, 0].tolist()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--encoder", required=True)
    parser.add_argument("--adapters", required=True)
    parser.add_argument("--way", choices=WAYS, required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    peer = Peer(arguments.encoder, arguments.adapters)
    small_server.serve(arguments.port, getattr(peer, arguments.way))


if __name__ == "__main__":
    main()
