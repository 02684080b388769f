#!/usr/bin/env python3
"""Writes published.json: keys and values of published config.json files, and whether gainlens reads them.

Usage: make_published.py FOLDER. FOLDER has config.json files of published checkpoints, named after them, and
SOURCES.tsv (name, where it was found). A configuration is stored as its difference from the first one of its family.
Of families that are not supported only the keys are stored that decide so. The outcomes below are written by hand.
Each refusal has a reason. The script prints how many configurations have which outcome.
"""
import csv
import json
import sys
from pathlib import Path

SUPPORTED = ("afmoe bloom cohere2 deepseek_v2 deepseek_v3 ernie4_5 exaone4 falcon gemma gemma2 gemma3 gemma3_text glm4 "
             "gpt2 gpt_neo gpt_neox gpt_oss gptj granite granite_swa granitemoe_swa hunyuan_v1_dense lfm2 lfm3 llama "
             "mimo_v2_flash mistral mixtral mpt olmo2 olmo3 opt phi phi3 qwen2 qwen2_moe qwen3 qwen3_5 qwen3_5_moe "
             "qwen3_5_moe_text qwen3_5_text qwen3_moe qwen3_next seed_oss smollm3 stablelm starcoder2").split()

# Keys that name places or programs. They compute nothing, and are not stored.
LEFT_OUT = ["_name_or_path", "transformers_version"]

# Configurations of supported families that are refused: a part of the message, and the reason.
REFUSED = {
    "EleutherAI__gpt-j-6B__as-gpt-neo":
        ("'rotary' is true", "an early file of GPT-J; the class that it names does not rotate, so it computes GPT-Neo"),
    "Qwen__Qwen1.5-14B":
        ("weights quantised by gptq are not read", "the weights are quantised by a method that is not read"),
    "Qwen__Qwen3-235B-A22B-FP8":
        ("'architectures' names Qwen3MoeForCausalLM", "the file was edited: model_type says another family"),
    "Qwen__Qwen3-32B-FP8-Static-PerTensor":
        ("of quantised weights, MXFP4 and FP8", "the weights are quantised by a method that is not read"),
    "deepseek-ai__DeepSeek-V3__b":
        ("unknown key 'num_routed_experts'", "the file was edited for another program; the key is n_routed_experts"),
    "facebook__opt-350m__py":
        ("'do_layer_norm_before' is false", "norms after the sums, and embeddings of another width, are not computed"),
    "ibm-granite__granite-3.3-8b-instruct-FP8":
        ("of quantised weights, MXFP4 and FP8", "the weights are quantised by a method that is not read"),
}

# Why a family is refused, by model_type or, in a file without it, by its class.
UNSUPPORTED = {
    "MiniCPM3ForCausalLM": "there is no reference: its class is code beside the checkpoint",
    "chatglm": "there is no reference: its class is code beside the checkpoint",
    "codegen": "no family here: queries, keys and values in an order of its own",
    "exaone": "there is no reference: its class is code beside the checkpoint",
    "gpt_bigcode": "no family here: learned positions with one KV head",
    "granitemoehybrid": "Mamba layers are not computed",
    "hunyuan": "there is no reference: its class is code beside the checkpoint",
    "jamba": "Mamba layers are not computed",
    "llama4": "attention in chunks is not computed",
    "mamba2": "it has no attention",
    "mimo": "there is no reference: its class is code beside the checkpoint",
    "minicpm": "there is no reference: its class is code beside the checkpoint",
    "minimax_m2": "no family here: experts chosen by sigmoids",
    "nemotron_h": "Mamba layers are not computed",
    "phi-msft": "early code beside the checkpoint, with tensors of its own; Phi replaces it",
    "phi4": "the file was edited: no library has this model_type",
    "phimoe": "no family here: its router has a rule of its own",
    "qwen": "there is no reference: its class is code beside the checkpoint",
    "rwkv5": "it has no attention",
    "yuan": "there is no reference: its class is code beside the checkpoint",
}


def named_source(text: str) -> str:
    """Where the file was found; a copy without an address is called that."""
    return "a public copy of the published file" if text.startswith("text index") else text.split(" (")[0]


def unsupported(config: dict) -> dict:
    """The row of a family that is not supported."""
    kept = {key: config[key] for key in ("model_type", "architectures") if key in config}
    if "model_type" in kept:
        name, message = kept["model_type"], f"model_type '{kept['model_type']}' is not supported"
    else:
        name = kept["architectures"][0]
        message = f"'architectures' names {name}, which is not supported"
    return {"keys": kept, "refused": message, "reason": UNSUPPORTED[name]}


def main() -> None:
    folder = Path(sys.argv[1])
    with (folder / "SOURCES.tsv").open() as file:
        sources = {row[0]: named_source(row[1]) for row in csv.reader(file, delimiter="\t") if len(row) > 1}
    bases: dict[str, dict] = {}
    rows = []
    for path in sorted(folder.glob("*.json")):
        if path.name.endswith("tokenizer_config.json"):
            continue
        config = json.loads(path.read_text())
        row = {"name": path.stem, "source": sources[path.name]}
        family = config.get("model_type")
        if family not in SUPPORTED:
            rows.append(row | unsupported(config))
            continue
        for key in LEFT_OUT:
            config.pop(key, None)
        base = bases.setdefault(family, config)
        row["base"] = family
        row["keys"] = {key: value for key, value in config.items() if key not in base or base[key] != value}
        row["without"] = [key for key in base if key not in config]
        if path.stem in REFUSED:
            row["refused"], row["reason"] = REFUSED[path.stem]
        rows.append(row)
    lines = ["{", '"bases": {']
    lines.append(",\n".join(f'"{name}": {json.dumps(base)}' for name, base in bases.items()))
    lines += ["},", '"rows": [', ",\n".join(json.dumps(row) for row in rows), "]", "}"]
    Path(__file__).with_name("published.json").write_text("\n".join(lines) + "\n")
    refused = [row for row in rows if "refused" in row]
    of_families = sum("base" in row for row in refused)
    print(f"{len(rows)} configurations: {len(rows) - len(refused)} read, {of_families} of supported families refused, "
          f"{len(refused) - of_families} of other families refused")


if __name__ == "__main__":
    main()
