"""Runs the field's Python reference implementation and records the queries, keys and values of every layer.

Its RMSNorm, rotary angles and softmax compute in float32 for every dtype of the model. Inside `float64_throughout`, its
own code runs with float64 in place of float32. No formula is written a second time.
"""

import contextlib
import functools
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
import reference_own_attention

PLUGGABLE = (
    "afmoe",
    "cohere2",
    "deepseek_v2",
    "deepseek_v3",
    "ernie4_5",
    "exaone4",
    "gemma",
    "gemma2",
    "gemma3",
    "glm4",
    "gpt2",
    "gpt_neox",
    "gpt_oss",
    "granite",
    "granite_swa",
    "granitemoe_swa",
    "hunyuan_v1_dense",
    "lfm2",
    "lfm3",
    "llama",
    "mimo_v2_flash",
    "mistral",
    "mixtral",
    "olmo2",
    "olmo3",
    "opt",
    "phi",
    "phi3",
    "qwen2",
    "qwen2_moe",
    "qwen3",
    "qwen3_moe",
    "seed_oss",
    "smollm3",
    "stablelm",
    "starcoder2",
    "qwen3_next",
    "qwen3_5",
    "qwen3_5_moe",
)
# Families with the rows of each head's gate scores after those of its queries, and with layers of linear attention.
GATE_BY_HEAD = ("qwen3_next", "qwen3_5_text", "qwen3_5_moe_text")
# Families with a projection of its own for the gate scores of all heads, and of all dimensions or of the whole head.
GATE_ALONE = {"afmoe": "gate_proj", "lfm3": "g_proj"}
# Families whose eager attention returns the softmax over the keys, and multiplies its output by the share of the keys.
SINK_ON_OUTPUT = ("granite_swa", "granitemoe_swa")
FAMILIES = PLUGGABLE + reference_own_attention.FAMILIES
# For these the reference has only its eager attention function.
NOT_FUSED = ("gemma2", "gpt_oss", "mimo_v2_flash", "bloom", "gpt_neo", "gptj", "mpt", *SINK_ON_OUTPUT)
# Beginnings of the names of routers that do not choose by their logits alone.
CORRECTED = ("Deepseek", "Afmoe", "MiMo")
# Constants that published checkpoints hold and that no program reads.
BUFFERS = (".attn.bias", ".attention.bias", ".masked_bias", ".inv_freq")


class Float64Torch:
    """The module `torch`, with float64 under the names of float32."""

    float = float32 = torch.float64

    def __getattr__(self, name):
        return getattr(torch, name)


@contextlib.contextmanager
def float64_throughout():
    modules = [importlib.import_module("transformers.modeling_rope_utils")]
    modules += [importlib.import_module(f"transformers.models.{family}.modeling_{family}") for family in FAMILIES]
    to_float32 = torch.Tensor.float
    try:
        for module in modules:
            module.torch = Float64Torch()
        torch.Tensor.float = torch.Tensor.double
        yield
    finally:
        for module in modules:
            module.torch = torch
        torch.Tensor.float = to_float32


def in_float64():
    return isinstance(modeling_qwen3.torch, Float64Torch)


class Recorder:
    """Records the inputs and statistics of each layer's attention, in the order of the layers."""

    def __init__(self, fused, positions=None):
        self.fused = fused
        self.positions = positions  # [query] queries whose statistics are kept; default all
        self.statistics = []
        self.value_norms = []  # [kv_head, key] for each layer
        self.windows = []  # for each layer the largest number of keys that a query sees; 0: all keys
        self.gates = []
        self.router_logits = []  # [T, expert] for each layer with experts; 1 for chosen ones in CORRECTED, else 0

    def record(self, query, key, value, visible, scaling, **options):
        """Records the inputs of one layer: queries [head, T, d], keys and values [kv_head, T, d], visible [T, T]."""
        self.statistics.append(
            attention_statistics.statistics(query, key, value, visible, scaling, **options, positions=self.positions)
        )
        self.value_norms.append(value.double().norm(dim=-1))
        most = visible.sum(-1).max().item()
        self.windows.append(most if most < len(visible) else 0)

    def attention(self, module, query, key, value, attention_mask, scaling, softcap=None, s_aux=None, **arguments):
        """An attention function for the reference: records, then calls the reference's fused or eager function."""
        visible = (attention_mask == 0)[0, 0]
        options = {"soft_cap": softcap, "sink_logit": s_aux}
        self.record(query[0], key[0], value[0], visible, scaling, **options)
        if self.fused:
            return sdpa_attention_forward(module, query, key, value, attention_mask, scaling=scaling)
        family = (
            modeling_qwen3 if isinstance(module, GatedAttention) else importlib.import_module(type(module).__module__)
        )
        eager = {} if softcap is None else {"softcap": softcap}
        output, weights = family.eager_attention_forward(
            module, query, key, value, attention_mask, scaling=scaling, **eager
        )
        if in_float64():
            own = attention_statistics.attention_weights(query[0], key[0], visible, scaling, **options)
            theirs = weights[0]
            if module.config.model_type in SINK_ON_OUTPUT:
                own = own @ value[0].repeat_interleave(query.shape[1] // value.shape[1], dim=0)
                theirs = output[0].transpose(0, 1)
            torch.testing.assert_close(own, theirs, rtol=1e-10, atol=1e-14)
        return output, weights

    def record_gate(self, head_dim, module, arguments, output):
        """A hook of q_proj: the mean gate of each head. Each head has the rows of its queries, then of its gate."""
        self.add_gate(output[0].unflatten(-1, (-1, 2, head_dim))[..., 1, :])

    def record_gate_alone(self, heads, module, arguments, output):
        """A hook of a projection of gate scores: the mean gate of each head."""
        self.add_gate(output[0].unflatten(-1, (heads, -1)))

    def add_gate(self, score):
        """score [T, head, head_dim or 1]"""
        self.gates.append(torch.sigmoid(score).double().mean(-1).transpose(0, 1))

    def route(self, module, arguments, output):
        if type(module).__name__.startswith(CORRECTED):  # does not choose by the logits alone
            chosen = torch.zeros_like(output[0], dtype=torch.float64)
            self.router_logits.append(chosen.scatter(1, output[2], 1.0))
        else:
            self.router_logits.append(output[0].double())


def stacked(layers):
    """Tensors [KV head or head, ..] of the layers as one [layer, ..].

    Of layers with fewer KV heads than others each one is repeated: it stands where the query heads look that read it.
    """
    most = max(len(layer) for layer in layers)
    return torch.stack([layer.repeat_interleave(most // len(layer), dim=0) for layer in layers])


def stacked_statistics(layers):
    """The fields of the statistics of all layers. In a layer without sink logits their mass is 0."""
    fields = sorted({field for layer in layers for field in layer})
    found = {}
    for field in fields:
        absent = torch.zeros_like(layers[0]["n_eff"]) if field == "sink_logit_mass" else None
        found[field] = stacked([layer.get(field, absent) for layer in layers])
    return found


class GatedAttention(modeling_qwen3.Qwen3Attention):
    """Qwen3 attention with the output gates, biases and optional norms of github.com/qiuzh20/gated_attention."""

    def __init__(self, config, layer_idx):
        super().__init__(config, layer_idx)
        self.groups = config.num_attention_heads // config.num_key_value_heads
        rows = config.num_attention_heads * self.head_dim
        # For each group of query heads that share a key head: their queries, then their gate scores.
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
        gate = torch.sigmoid(
            score.reshape(batch, length, self.config.num_attention_heads, -1)
        )  # [.., head, 1 or head_dim]
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


def read_config(folder):
    return json.loads((pathlib.Path(folder) / "config.json").read_text())


def model_class(folder):
    return GatedQwen3 if is_gated(read_config(folder)) else AutoModelForCausalLM


def has_fused_attention(folder):
    return read_config(folder)["model_type"] not in NOT_FUSED


def load(folder, dtype, attention):
    """The reference's model of a checkpoint folder. Checks that every tensor is used and none is missing."""
    options = {"dtype": dtype, "attn_implementation": attention, "output_loading_info": True}
    if "num_experts_per_tok" in read_config(folder):
        options["experts_implementation"] = "eager"
    model, info = model_class(folder).from_pretrained(folder, **options)
    unexpected = [name for name in info["unexpected_keys"] if not name.endswith(BUFFERS)]
    assert not info["missing_keys"] and not unexpected and not info["mismatched_keys"], info
    assert all(parameter.dtype == dtype for parameter in model.parameters())
    return model.eval()


def run(folder, dtype, tokens, fused):
    """Logits [T, vocabulary] of a checkpoint folder, and the Recorder of its layers.

    `fused` selects the reference's fused attention, its default, instead of the eager one. float64 runs must be eager
    and inside `float64_throughout`; otherwise they have parts in float32.
    """
    recorder = Recorder(fused)
    ALL_ATTENTION_FUNCTIONS.register("recording", recorder.attention)
    ALL_MASK_ATTENTION_FUNCTIONS.register("recording", eager_mask)
    family = read_config(folder)["model_type"]
    own = family in reference_own_attention.FAMILIES
    model = load(
        folder,
        dtype,
        reference_own_attention.implementation(model_config=read_config(folder), fused=fused) if own else "recording",
    )
    if in_float64():
        reference_own_attention.use_exact_tables(model)
    for module in model.modules():
        if isinstance(module, GatedAttention):
            module.gates = recorder.gates
        if type(module).__name__.lower().endswith(("topkrouter", "tokenchoicerouter")):
            module.register_forward_hook(recorder.route)
        if family in GATE_BY_HEAD and hasattr(module, "q_proj"):
            module.q_proj.register_forward_hook(functools.partial(recorder.record_gate, module.head_dim))
        if family in GATE_ALONE and hasattr(module, "q_proj"):
            heads = module.q_proj.out_features // module.head_dim
            scores = getattr(module, GATE_ALONE[family])
            scores.register_forward_hook(functools.partial(recorder.record_gate_alone, heads))
    if own:
        reference_own_attention.record(model, family, recorder, check=in_float64())
    with torch.no_grad():
        logits = model(tokens[None], use_cache=False).logits[0]
    return logits.double(), recorder
