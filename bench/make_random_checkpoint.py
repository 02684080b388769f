"""Writes a random llama checkpoint (float32 safetensors, Hugging Face layout) and random token ids for measurements.

    python bench/make_random_checkpoint.py OUT --layers 4 --heads 16 --kv-heads 16 --head-dim 128

Needs only numpy. The same arguments give the same bytes."""

import argparse
import json
import pathlib
import struct

import numpy


def tensors(arguments, random):
    """Name, shape and standard deviation (None: all ones) of every tensor, in the order in which they are drawn."""
    width, mlp = arguments.width, arguments.mlp_width
    rows = arguments.heads * arguments.head_dim
    kv_rows = arguments.kv_heads * arguments.head_dim
    yield "model.embed_tokens.weight", (arguments.vocabulary, width), 1.0
    for layer in range(arguments.layers):
        prefix = f"model.layers.{layer}."
        yield prefix + "input_layernorm.weight", (width,), None
        yield prefix + "self_attn.q_proj.weight", (rows, width), 1.5 * width**-0.5
        yield prefix + "self_attn.k_proj.weight", (kv_rows, width), 1.5 * width**-0.5
        yield prefix + "self_attn.v_proj.weight", (kv_rows, width), width**-0.5
        yield prefix + "self_attn.o_proj.weight", (width, rows), rows**-0.5
        yield prefix + "post_attention_layernorm.weight", (width,), None
        yield prefix + "mlp.gate_proj.weight", (mlp, width), width**-0.5
        yield prefix + "mlp.up_proj.weight", (mlp, width), width**-0.5
        yield prefix + "mlp.down_proj.weight", (width, mlp), mlp**-0.5
    yield "model.norm.weight", (width,), None


def write_checkpoint(folder, arguments):
    random = numpy.random.default_rng(arguments.seed)
    header, blobs, offset = {}, [], 0
    for name, shape, scale in tensors(arguments, random):
        values = numpy.ones(shape) if scale is None else scale * random.standard_normal(shape)
        blob = values.astype("<f4").tobytes()
        header[name] = {"dtype": "F32", "shape": list(shape), "data_offsets": [offset, offset + len(blob)]}
        blobs.append(blob)
        offset += len(blob)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(folder / "model.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for blob in blobs:
            file.write(blob)
    config = {
        "model_type": "llama",
        "architectures": ["LlamaForCausalLM"],
        "hidden_size": arguments.width,
        "intermediate_size": arguments.mlp_width,
        "num_hidden_layers": arguments.layers,
        "num_attention_heads": arguments.heads,
        "num_key_value_heads": arguments.kv_heads,
        "head_dim": arguments.head_dim,
        "vocab_size": arguments.vocabulary,
        "max_position_embeddings": arguments.positions,
        "rms_norm_eps": 1e-6,
        "rope_theta": 10000.0,
        "hidden_act": "silu",
        "tie_word_embeddings": True,
    }
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    ids = random.integers(0, arguments.vocabulary, arguments.positions + 1)
    (folder / "ids.json").write_text(json.dumps(ids.tolist()))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=pathlib.Path)
    for name, default in [
        ("layers", 4),
        ("heads", 16),
        ("kv-heads", 16),
        ("head-dim", 128),
        ("width", 1024),
        ("mlp-width", 2816),
    ]:
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--vocabulary", type=int, default=2048)
    parser.add_argument("--positions", type=int, default=32768)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    write_checkpoint(arguments.out, arguments)


main()
