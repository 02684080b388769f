#!/usr/bin/env python3
"""Writes published.json: keys and values of published config.json files, and whether gainlens reads them.

Usage: make_published.py FOLDER. FOLDER has config.json files of published checkpoints, named after them, and
SOURCES.tsv (name, where it was found). A configuration is stored as its difference from the first one of its family.
Of families that are not supported only the keys are stored that decide so. The outcomes below are written by hand.
"""
import csv
import json
import sys
from pathlib import Path

SUPPORTED = ("bloom falcon gemma2 gemma3 gemma3_text gpt2 gpt_neox gpt_oss llama mistral mpt olmo2 phi3 qwen2 qwen3 "
             "qwen3_5 qwen3_5_moe qwen3_5_moe_text qwen3_5_text qwen3_moe qwen3_next stablelm").split()

# Keys that name places or programs. They compute nothing, and are not stored.
LEFT_OUT = ["_name_or_path", "transformers_version"]

# Configurations of supported families that are refused, and a part of the message.
REFUSED = {
    "Qwen__Qwen1.5-14B": "weights quantised by gptq are not read",
    "Qwen__Qwen2-1.5B-Instruct__edited": "unknown key 'mask_value'",
    "Qwen__Qwen2.5-0.5B-Instruct__edited": "unknown key 'mask_value'",
    "Qwen__Qwen2.5-3B-Instruct__edited": "unknown key 'linear_impl_type'",
    "Qwen__Qwen3-32B-FP8-Static-PerTensor": "of quantised weights, MXFP4 and FP8",
    "openai-community__gpt2-medium__edited": "'bos_token_id' is 50272; must be null or an id below vocab_size (50272)",
}


def named_source(text: str) -> str:
    """Where the file was found; a copy without an address is called that."""
    return "a public copy of the published file" if text.startswith("text index") else text.split(" (")[0]


def unsupported(config: dict) -> tuple[dict, str]:
    kept = {key: config[key] for key in ("model_type", "architectures") if key in config}
    if "model_type" in kept:
        return kept, f"model_type '{kept['model_type']}' is not supported"
    return kept, f"'architectures' names {kept['architectures'][0]}, which is not supported"


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
            row["keys"], row["refused"] = unsupported(config)
            rows.append(row)
            continue
        for key in LEFT_OUT:
            config.pop(key, None)
        base = bases.setdefault(family, config)
        row["base"] = family
        row["keys"] = {key: value for key, value in config.items() if key not in base or base[key] != value}
        row["without"] = [key for key in base if key not in config]
        if path.stem in REFUSED:
            row["refused"] = REFUSED[path.stem]
        rows.append(row)
    lines = ["{", '"bases": {']
    lines.append(",\n".join(f'"{name}": {json.dumps(base)}' for name, base in bases.items()))
    lines += ["},", '"rows": [', ",\n".join(json.dumps(row) for row in rows), "]", "}"]
    Path(__file__).with_name("published.json").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
