"""Makes the numbers that the field's Python reference computes from Gemma 3 270M.

The model is the GGUF file that scripts/fetch-gemma3 fetches.

    python tests/golden/make_gemma_golden.py --gguf gemma-3-270m-q4_k_m.gguf --shared-data ../shared/data \\
        --out tests/golden/gemma3-270m

Needs torch, transformers, accelerate, gguf, sentencepiece and protobuf. Writes <out>/expected.safetensors:
    tokens [4096] int64                              the first tokens of WikiText's validation text, after a BOS
    mean_nll [1], float32.mean_nll [1]               of tokens 1..4095 given the tokens before, in nats
    query_positions [Q], logit_positions [P] int64   within the first 1,024 tokens; all following entries are for these
    statistics.<field>                               as in make_model_golden.py, each [layer, head, Q(, key)]
    float32.statistics.<field>                       from a float32 run; the statistics are computed in float64
    top_ids [P, 32] int64, top_logits [P, 32]        the largest logits, largest first
    logsumexp [P]; float32.top_logits, float32.logsumexp
Entries without a prefix come from the reference in float64 throughout. The config is written out here because the file
leaves out two things that its program knows: the RoPE base of local layers, and which layers are local.
"""

import argparse
import gzip
import hashlib
import json
import pathlib
import platform

import gguf
import safetensors.torch
import torch
import transformers
from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS, eager_mask
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

import reference_model
from make_lines_golden import gemma as sentencepiece_encoder
from make_model_golden import relative_error

COMMAND = (
    "python tests/golden/make_gemma_golden.py --gguf gemma-3-270m-q4_k_m.gguf "
    "--shared-data ../shared/data --out tests/golden/gemma3-270m"
)
CONFIG = {
    "vocab_size": 262144,
    "hidden_size": 640,
    "intermediate_size": 2048,
    "num_hidden_layers": 18,
    "num_attention_heads": 4,
    "num_key_value_heads": 1,
    "head_dim": 256,
    "query_pre_attn_scalar": 256,
    "hidden_activation": "gelu_pytorch_tanh",
    "max_position_embeddings": 32768,
    "rms_norm_eps": 1e-6,
    "sliding_window": 512,
    "layer_types": (5 * ["sliding_attention"] + ["full_attention"]) * 3,
    "rope_parameters": {
        "full_attention": {"rope_type": "default", "rope_theta": 1e6},
        "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
    },
    "tie_word_embeddings": True,
    "bos_token_id": 2,
    "eos_token_id": 1,
}
NLL_LENGTH, LENGTH, TOP = 4096, 1024, 32
# The first positions, both sides of the edges of the window and of a tile, and evenly spread positions.
QUERIES = torch.tensor(
    sorted({*range(4), 7, 8, 31, 63, 64, 65, 127, 255, *range(510, 515), 575, 576, *range(640, LENGTH, 24), LENGTH - 1})
)
LOGITS = torch.tensor([0, 1, 7, 64, 255, 511, 512, 513, 700, 800, 900, LENGTH - 1])
BLOCK = 128  # number of tokens whose logits are in memory at the same time


def first_tokens(file, text_file):
    text = gzip.open(text_file, "rt", encoding="utf-8", newline="").read(20 * NLL_LENGTH)
    ids = sentencepiece_encoder(file)(text)
    return torch.tensor([CONFIG["bos_token_id"], *ids[: NLL_LENGTH - 1]])


def load(file, dtype, attention):
    config = transformers.Gemma3TextConfig(**CONFIG)
    model = transformers.AutoModelForCausalLM.from_pretrained(
        file.parent, gguf_file=file.name, config=config, dtype=dtype, attn_implementation=attention
    )
    state = model.state_dict()
    read = {tensor.name: tensor for tensor in gguf.GGUFReader(file).tensors}
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.GEMMA3, config.num_hidden_layers)
    # No tensor kept its initial value, and norms are w = (1 + w) - 1 without rounding.
    for name in state.keys() - {"lm_head.weight"}:
        tensor = read.pop(names.get_name(name, try_suffixes=(".weight",)))
        values = torch.tensor(gguf.quants.dequantize(tensor.data, tensor.tensor_type), dtype=dtype)
        if name.endswith("norm.weight"):
            state[name].copy_(values - 1)
        assert torch.equal(state[name], values - 1 if name.endswith("norm.weight") else values), name
    assert not read, f"tensors of the file that the model lacks: {read.keys()}"
    return model.eval()


def hidden_states(model, tokens):
    with torch.no_grad():
        return model.model(tokens[None], use_cache=False).last_hidden_state[0]


def mean_nll(model, tokens):
    hidden, targets = hidden_states(model, tokens)[:-1], tokens[1:]
    with torch.no_grad():
        losses = [
            torch.nn.functional.cross_entropy(model.lm_head(block).double(), target, reduction="none")
            for block, target in zip(hidden.split(BLOCK), targets.split(BLOCK), strict=True)
        ]
    return torch.cat(losses).mean().reshape(1)


def observe(file, dtype, tokens):
    """Statistics, logits at LOGITS and the mean NLL of one run."""
    recorder = reference_model.Recorder(fused=False, positions=QUERIES)
    ALL_ATTENTION_FUNCTIONS.register("recording", recorder.attention)
    ALL_MASK_ATTENTION_FUNCTIONS.register("recording", eager_mask)
    model = load(file, dtype, "recording")
    hidden = hidden_states(model, tokens[:LENGTH])
    with torch.no_grad():
        logits = model.lm_head(hidden[LOGITS]).double()
    layers = recorder.statistics
    found = {f"statistics.{field}": torch.stack([layer[field] for layer in layers]) for field in layers[0]}
    model.set_attn_implementation("sdpa")
    return found | {"logits": logits, "mean_nll": mean_nll(model, tokens)}


def provenance(file):
    versions = {module.__name__: module.__version__ for module in (torch, transformers)} | {
        "python": platform.python_version()
    }
    return {"command": COMMAND, "versions": versions, "gguf_sha256": hashlib.sha256(file.read_bytes()).hexdigest()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gguf", type=pathlib.Path, required=True, help="the model")
    parser.add_argument("--shared-data", type=pathlib.Path, required=True, help="folder with wikitext-raw/")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="folder of expected.safetensors")
    arguments = parser.parse_args()
    torch.set_num_threads(1)  # sums always in the same order
    transformers.logging.set_verbosity_error()
    tokens = first_tokens(arguments.gguf, arguments.shared_data / "wikitext-raw" / "wiki.valid.raw.gz")
    float32 = observe(arguments.gguf, torch.float32, tokens)
    with reference_model.float64_throughout():
        expected = observe(arguments.gguf, torch.float64, tokens)

    top = expected["logits"].topk(TOP)
    stored = {"tokens": tokens, "query_positions": QUERIES, "logit_positions": LOGITS, "top_ids": top.indices}
    for prefix, run in (("", expected), ("float32.", float32)):
        logits = run.pop("logits")
        stored[f"{prefix}top_logits"] = logits.gather(1, top.indices)
        stored[f"{prefix}logsumexp"] = logits.logsumexp(1)
        stored |= {f"{prefix}{name}": tensor for name, tensor in run.items()}
    for name in expected:
        print(f"{name:48} float32 against float64 {relative_error(float32[name], expected[name], 1e-3):.1e}")
    print(f"mean NLL {expected['mean_nll'].item():.9f}")
    arguments.out.mkdir(parents=True, exist_ok=True)
    stored = {name: tensor.clone().contiguous() for name, tensor in stored.items()}
    metadata = {"provenance": json.dumps(provenance(arguments.gguf), sort_keys=True)}
    safetensors.torch.save_file(stored, arguments.out / "expected.safetensors", metadata=metadata)


if __name__ == "__main__":
    main()
