"""Keys and defaults of AdapterHub's configurations (`adapters` 1.3.0)."""

ACTIVATIONS = {
    "relu": "relu",
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_orig": "gelu",
    "swish": "silu",
    "silu": "silu",
    "tanh": "tanh",
    "leakyrelu": "leaky_relu",
    "linear": "linear",
}
# Dict from our activations to AdapterHub's. For the last three, AdapterHub has
# several names, of which one is chosen here.
NON_LINEARITIES = {
    **{ours: theirs for theirs, ours in ACTIVATIONS.items()},
    "gelu": "gelu",
    "gelu_tanh": "gelu_new",
    "silu": "swish",
}
BOTTLENECK = {
    "adapter_residual_before_ln": False,
    "cross_adapter": False,
    "dropout": 0.0,
    "factorized_phm_W": True,
    "factorized_phm_rule": False,
    "hypercomplex_nonlinearity": "glorot-uniform",
    "init_weights": "bert",
    "init_weights_seed": None,
    "inv_adapter": None,
    "inv_adapter_reduction_factor": None,
    "is_parallel": False,
    "learn_phm": True,
    "leave_out": [],
    "ln_after": False,
    "ln_before": False,
    "mh_adapter": False,
    "non_linearity": "relu",
    "original_ln_after": True,
    "original_ln_before": False,
    "output_adapter": True,
    "phm_bias": True,
    "phm_c_init": "normal",
    "phm_dim": 4,
    "phm_init_range": 0.0001,
    "phm_layer": False,
    "phm_rank": 1,
    "reduction_factor": 16,
    "residual_before_ln": True,
    "scaling": 1.0,
    "shared_W_phm": False,
    "shared_phm_rule": True,
    "stochastic_depth": 0.0,
    "use_gating": False,
}
LORA = {
    "alpha": 8,
    "architecture": "lora",
    "attn_matrices": ["q", "v"],
    "composition_mode": "add",
    "dropout": 0.0,
    "dtype": None,
    "init_weights": "lora",
    "init_weights_seed": None,
    "intermediate_lora": False,
    "leave_out": [],
    "output_lora": False,
    "r": 8,
    "selfattn_lora": True,
    "use_dora": False,
    "use_gating": False,
    "vera_b": None,
    "vera_d": None,
}
PREFIX = {
    "architecture": "prefix_tuning",
    "bottleneck_size": 512,
    "cross_prefix": True,
    "dropout": 0.0,
    "encoder_prefix": True,
    "flat": False,
    "init_weights_seed": None,
    "leave_out": [],
    "non_linearity": "tanh",
    "prefix_length": 30,
    "shared_gating": True,
    "use_gating": False,
}
PROMPT = {
    "architecture": "prompt_tuning",
    "combine": "prefix",
    "init_weights_seed": None,
    "prompt_init": "random_uniform",
    "prompt_init_text": None,
    "prompt_length": 10,
}
ATTENTION = {"q": "query", "k": "key", "v": "value"}
RESIDUALS = {True: "sublayer_output", "post_add": "sum", False: "read"}
STANDS = {"prefix": "before", "prefix_after_bos": "after_first"}
# Keys in files of version 1 that tf_adapters ignores or converts.
OLD_KEYS = {"invertible_adapter", "new_attention_norm", "type", "patience"}
OLD_KEYS |= {"attention_type"}
