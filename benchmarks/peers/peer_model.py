"""An encoder with the `adapters` library's modules and our linear head."""

import logging

import adapters
from adapters import DoubleSeqBnConfig
from adapters import SeqBnConfig
import torch
import transformers

ADAPTER_NAME = "task"
CONFIGS = {"houlsby": DoubleSeqBnConfig, "pfeiffer": SeqBnConfig}
METHODS = (*CONFIGS, "full")
# Both warn of what is meant here: a checkpoint's pooler left out, and the one
# pass that `add_adapter` runs before its adapter is active.
transformers.logging.set_verbosity_error()
logging.getLogger("adapters").setLevel(logging.ERROR)

HEAD_DROPOUT = 0.1
WEIGHT_DECAY = 0.01


class Classifier(torch.nn.Module):
    """Dropout and one linear layer on the last hidden state of token 0."""

    def __init__(self, encoder, num_classes):
        super().__init__()
        self.encoder = encoder
        self.dropout = torch.nn.Dropout(HEAD_DROPOUT)
        self.head = torch.nn.Linear(encoder.config.hidden_size, num_classes)
        torch.nn.init.normal_(self.head.weight, std=0.02)
        torch.nn.init.zeros_(self.head.bias)

    def forward(self, **inputs):
        """Returns logits of shape (batch, classes) in float32."""
        hidden = self.encoder(**inputs, return_dict=True).last_hidden_state
        return self.head(self.dropout(hidden[:, 0])).float()


def build(
    encoder,
    num_classes,
    method="houlsby",
    units=64,
    activation="swish",
    train_layer_norms=False,
    attention="sdpa",
):
    """Returns a classifier in which only what the method declares trains.

    Args:
        encoder: Folder of a Hugging Face BERT or RoBERTa.
        num_classes: Integer, outputs of the head.
        method: "houlsby", "pfeiffer" or "full".
        units: Integer, exact width of each bottleneck.
        activation: The library's name of the bottleneck's activation.
        train_layer_norms: Whether every norm of the encoder trains too, the
            embedding's included (Houlsby et al. 2019, section 2).
        attention: "sdpa" or "eager", as transformers takes it.

    Returns:
        A `Classifier`.
    """
    model = build_encoder(
        encoder, method, units, activation, train_layer_norms, attention
    )
    return Classifier(model, num_classes)


def build_encoder(
    encoder,
    method="houlsby",
    units=64,
    activation="swish",
    train_layer_norms=False,
    attention="sdpa",
):
    """Returns the encoder of `build`, for a head of one's own."""
    # No head reads the pooler, so it would be computed for nothing.
    model = transformers.AutoModel.from_pretrained(
        encoder,
        add_pooling_layer=False,
        attn_implementation=attention,
        local_files_only=True,
    )
    if method != "full":
        _add_adapter(model, method, units, activation)
        for name, parameter in model.named_parameters():
            if train_layer_norms and "LayerNorm" in name:
                parameter.requires_grad_(True)
    return model


def _add_adapter(model, method, units, activation):
    adapters.init(model)
    hidden_size = model.config.hidden_size
    config = CONFIGS[method](
        # The library takes int(hidden_size // factor) units: the half keeps
        # rounding from taking one away.
        reduction_factor=hidden_size / (units + 0.5),
        non_linearity=activation,
    )
    model.add_adapter(ADAPTER_NAME, config=config)
    model.train_adapter(ADAPTER_NAME)
    widths = {
        parameter.shape[0]
        for name, parameter in model.named_parameters()
        if name.endswith("adapter_down.0.weight")
    }
    if widths != {units}:
        raise ValueError(
            f"The library built bottlenecks of width {sorted(widths)}, not "
            f"{units}, on an encoder of width {hidden_size}. Choose `units` "
            "below the encoder's width."
        )


def trained_weights(model):
    """Returns the number of weights that train."""
    return sum(p.numel() for p in model.parameters() if p.requires_grad)


def make_optimizer(model, learning_rate):
    """Returns AdamW that decays matrices but no norms and no biases."""
    trained = [p for p in model.parameters() if p.requires_grad]
    groups = [
        {
            "params": [p for p in trained if p.ndim > 1],
            "weight_decay": WEIGHT_DECAY,
        },
        {"params": [p for p in trained if p.ndim <= 1], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(
        groups, lr=learning_rate, betas=(0.9, 0.999), eps=1e-8
    )


def clip_gradients(model):
    """Clips the trained weights' gradients to global norm 1."""
    trained = [p for p in model.parameters() if p.requires_grad]
    torch.nn.utils.clip_grad_norm_(trained, 1.0)
