"""Prints the inverse frequencies and attention factors for tests/models/rope_test.cpp, from Hugging Face transformers.

Run: python tests/golden/make_rope_golden.py

Needs torch and transformers. The numbers in the test were made with transformers 5.23.0.
"""

import transformers
from transformers import LlamaConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

HEAD_DIM = 16
CASES = {
    "linear": dict(rope_type="linear", rope_theta=10000.0, factor=4.0),
    "llama3": dict(
        rope_type="llama3",
        rope_theta=500000.0,
        factor=8.0,
        low_freq_factor=1.0,
        high_freq_factor=4.0,
        original_max_position_embeddings=8192,
    ),
    "yarn": dict(rope_type="yarn", rope_theta=10000.0, factor=4.0, original_max_position_embeddings=2048),
    "yarn, every option": dict(
        rope_type="yarn",
        rope_theta=1000000.0,
        factor=4.0,
        original_max_position_embeddings=2048,
        truncate=False,
        beta_fast=24.0,
        beta_slow=2.0,
        attention_factor=1.25,
    ),
    "proportional": dict(rope_type="proportional", rope_theta=1000000.0, factor=2.0, partial_rotary_factor=0.7),
}

print("transformers", transformers.__version__)
for name, parameters in CASES.items():
    config = LlamaConfig(
        head_dim=HEAD_DIM,
        hidden_size=4 * HEAD_DIM,
        num_attention_heads=4,
        max_position_embeddings=65536,
        rope_parameters=parameters,
    )
    frequencies, attention_factor = ROPE_INIT_FUNCTIONS[parameters["rope_type"]](config, "cpu")
    print(f"{name}: attention factor {attention_factor:.9g}; " + ", ".join(f"{f:.9g}" for f in frequencies.tolist()))
