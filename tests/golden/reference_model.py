"""The field's Python reference implementation, run so that every layer's queries, keys and values can be looked at.

Its RMSNorm, rotary angles and softmax compute in float32 whatever the model's dtype. Inside `float64_throughout` its own code runs with
float64 in place of float32: no formula is written a second time.
"""

import contextlib
import importlib
import json
import pathlib

import torch
from transformers import AutoModelForCausalLM, Qwen3Config, Qwen3ForCausalLM
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS, eager_mask
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS
from transformers.models.qwen3 import modeling_qwen3

import attention_statistics

FAMILIES = ("llama", "mistral", "qwen2", "qwen3")


class Float64Torch:
    """The module `torch` with float64 where the reference names float32."""

    float = float32 = torch.float64

    def __getattr__(self, name):
        return getattr(torch, name)


@contextlib.contextmanager
def float64_throughout():
    modules = [importlib.import_module("transformers.modeling_rope_utils")]
    modules += [importlib.import_module(f"transformers.models.{family}.modeling_{family}") for family in FAMILIES]
    try:
        for module in modules:
            module.torch = Float64Torch()
        yield
    finally:
        for module in modules:
            module.torch = torch


class Recorder:
    """What each layer's attention worked on, in the order of the layers."""

    def __init__(self, fused):
        self.fused = fused
        self.statistics = []
        self.gates = []

    def attention(self, module, query, key, value, attention_mask, scaling, **arguments):
        """An attention function of the reference: records, then attends as its fused or its eager one does."""
        visible = (attention_mask == 0)[0, 0]
        self.statistics.append(attention_statistics.statistics(query[0], key[0], value[0], visible, scaling))
        if self.fused:
            return sdpa_attention_forward(module, query, key, value, attention_mask, scaling=scaling)
        output, weights = modeling_qwen3.eager_attention_forward(module, query, key, value, attention_mask, scaling=scaling)
        if isinstance(modeling_qwen3.torch, Float64Torch):
            own = attention_statistics.attention_weights(query[0], key[0], visible, scaling)
            torch.testing.assert_close(own, weights[0], rtol=1e-10, atol=1e-14)
        return output, weights


class GatedAttention(modeling_qwen3.Qwen3Attention):
    """Qwen3 attention with the output gates, biases and optional norms of github.com/qiuzh20/gated_attention."""

    def __init__(self, config, layer_idx):
        super().__init__(config, layer_idx)
        self.groups = config.num_attention_heads // config.num_key_value_heads
        rows = config.num_attention_heads * self.head_dim
        # Per group of query heads that share a key head: their queries, then their gate scores.
        self.scores_per_group = self.groups if config.headwise_attn_output_gate else self.groups * self.head_dim
        gate_rows = self.scores_per_group * config.num_key_value_heads
        key_rows = config.num_key_value_heads * self.head_dim
        self.q_proj = torch.nn.Linear(config.hidden_size, rows + gate_rows, bias=config.qkv_bias)
        self.k_proj = torch.nn.Linear(config.hidden_size, key_rows, bias=config.qkv_bias)
        self.v_proj = torch.nn.Linear(config.hidden_size, key_rows, bias=config.qkv_bias)
        self.o_proj = torch.nn.Linear(rows, config.hidden_size, bias=config.qkv_bias)
        if not config.use_qk_norm:
            del self.q_norm, self.k_norm

    def forward(self, hidden_states, position_embeddings, attention_mask, past_key_values=None, **arguments):
        batch, length, _ = hidden_states.shape
        grouped = self.q_proj(hidden_states).view(batch, length, self.config.num_key_value_heads, -1)
        query, score = grouped.split([self.groups * self.head_dim, self.scores_per_group], dim=-1)
        query = query.reshape(batch, length, -1, self.head_dim).transpose(1, 2)
        key = self.k_proj(hidden_states).view(batch, length, -1, self.head_dim).transpose(1, 2)
        value = self.v_proj(hidden_states).view(batch, length, -1, self.head_dim).transpose(1, 2)
        if self.config.use_qk_norm:
            query, key = self.q_norm(query), self.k_norm(key)
        query, key = modeling_qwen3.apply_rotary_pos_emb(query, key, *position_embeddings)
        attend = ALL_ATTENTION_FUNCTIONS[self.config._attn_implementation]
        output, weights = attend(self, query, key, value, attention_mask, scaling=self.scaling)
        gate = torch.sigmoid(score.reshape(batch, length, self.config.num_attention_heads, -1))  # [.., head, 1 or head_dim]
        self.gates.append(gate[0].double().mean(-1).transpose(0, 1))
        return self.o_proj((output * gate).reshape(batch, length, -1)), weights


class GatedQwen3(Qwen3ForCausalLM):
    def __init__(self, config):
        super().__init__(config)
        for index, layer in enumerate(self.model.layers):
            layer.self_attn = GatedAttention(config, index)
        self.post_init()


def is_gated(config):
    return bool(config.get("headwise_attn_output_gate") or config.get("elementwise_attn_output_gate"))


def model_class(folder):
    config = json.loads((pathlib.Path(folder) / "config.json").read_text())
    return GatedQwen3 if is_gated(config) else AutoModelForCausalLM


def run(folder, dtype, tokens, fused):
    """Logits [T, vocabulary], statistics (one dictionary a layer) and gates ([head, T] a layer) of a checkpoint folder.

    `fused` picks the reference's fused attention, its default, over the eager one. float64 runs must be eager and made inside
    `float64_throughout`, or they hold float32 parts.
    """
    recorder = Recorder(fused)
    ALL_ATTENTION_FUNCTIONS.register("recording", recorder.attention)
    ALL_MASK_ATTENTION_FUNCTIONS.register("recording", eager_mask)
    model = model_class(folder).from_pretrained(folder, dtype=dtype, attn_implementation="recording").eval()
    assert all(parameter.dtype == dtype for parameter in model.parameters())
    for module in model.modules():
        if isinstance(module, GatedAttention):
            module.gates = recorder.gates
    with torch.no_grad():
        logits = model(tokens[None], use_cache=False).logits[0]
    return logits.double(), recorder.statistics, recorder.gates
