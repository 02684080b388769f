"""Makes tests/golden/forms.json: golden checkpoints whose files have another form, and the logits of the reference.

    python tests/golden/make_form_golden.py

Each form changes keys of config.json, or the names and the layout of the tensors, of a checkpoint in
tests/golden/models. The logits are those of the last of 60 positions, from Hugging Face transformers in float64
(reference_model.py). Needs torch and transformers. "prefix", "stack" and "split" are what the test
does to the tensors; this script does the same.
"""

import json
import pathlib
import shutil
import tempfile

import safetensors.torch
import torch
import transformers

import reference_model

HERE = pathlib.Path(__file__).parent
IDS = [(7 * i * i + 3 * i + 1) % 60 for i in range(60)]
FACTORS = {"short_factor": [1.0, 1.25, 2.0], "long_factor": [1.5, 2.5, 6.0]}
WIDE = {
    "short_factor": [1.0, 1.05, 1.1, 1.2, 1.5, 1.7],
    "long_factor": [1.1, 1.5, 3.0, 5.0, 20.0, 40.0],
}

# Form: the checkpoint, keys that are replaced (null: removed), what is done to the tensors.
FORMS = {
    # The trained length stands outside of the object, in it, in both places, or nowhere.
    "phi3 both": ("phi3-longrope-long", {"rope_scaling": {"type": "longrope", "original_max_position_embeddings": 96}
                                         | FACTORS}, {}),
    "phi3 inner": ("phi3-longrope-long", {"original_max_position_embeddings": None,
                                          "rope_scaling": {"type": "longrope", "original_max_position_embeddings": 48}
                                          | FACTORS}, {}),
    "phi3 nowhere": ("phi3-longrope-long", {"original_max_position_embeddings": None}, {}),
    "phi3 called yarn": ("phi3-longrope-long", {"rope_scaling": {"type": "yarn"} | FACTORS}, {}),
    "llama both": ("llama", {"max_position_embeddings": 256, "original_max_position_embeddings": 32,
                             "rope_scaling": {"rope_type": "longrope", "original_max_position_embeddings": 128} | WIDE},
                   {}),
    "llama inner": ("llama", {"max_position_embeddings": 256,
                              "rope_scaling": {"rope_type": "longrope", "original_max_position_embeddings": 32} | WIDE},
                    {}),
    # A window that is used is that of all layers.
    "qwen3-moe window": ("qwen3-moe", {"use_sliding_window": True, "sliding_window": 9, "max_window_layers": None}, {}),
    # The text half of a multimodal checkpoint.
    "qwen3-5 prefix": ("qwen3-5", {}, {"prefix": "model.language_model."}),
    "qwen3-5-moe prefix": ("qwen3-5-moe", {}, {"prefix": "model.language_model."}),
    # Experts one by one, and as stacks.
    "qwen3-5-moe split": ("qwen3-5-moe", {}, {"split": True}),
    "mixtral stack": ("mixtral", {}, {"stack": "mlp"}),
    "qwen2-moe stack": ("qwen2-moe", {}, {"stack": "mlp"}),
    "qwen3-moe stack": ("qwen3-moe", {}, {"stack": "mlp"}),
    "qwen3-moe-mixed stack": ("qwen3-moe-mixed", {}, {"stack": "mlp"}),
    "qwen3-next stack": ("qwen3-next", {}, {"stack": "mlp"}),
    "deepseek-v2 stack": ("deepseek-v2", {}, {"stack": "mlp"}),
    "deepseek-v3 stack": ("deepseek-v3", {}, {"stack": "mlp"}),
    "afmoe stack": ("afmoe", {}, {"stack": "mlp"}),
    "mimo-v2-flash stack": ("mimo-v2-flash", {}, {"stack": "mlp"}),
}
GATE, UP, DOWN = ("gate_proj", "w1"), ("up_proj", "w3"), ("down_proj", "w2")


def stacked(tensors, module):
    """Experts one by one as [experts, gate and then up, width] and [experts, width, expert width]."""
    made, experts = {}, {}
    for name, tensor in tensors.items():
        head, found, rest = name.partition(".experts.")
        if not found:
            made[name.replace("block_sparse_moe", module).replace("attention_sink_bias", "sinks")] = tensor
            continue
        index, projection, _ = rest.split(".")
        layer = head.rsplit(".", 1)[0]
        experts.setdefault(layer, {})[int(index), projection] = tensor
    for layer, parts in experts.items():
        count = 1 + max(index for index, _ in parts)

        def of(index, names):
            return next(parts[index, name] for name in names if (index, name) in parts)

        at = f"{layer}.{module}.experts."
        made[at + "gate_up_proj"] = torch.stack([torch.cat([of(i, GATE), of(i, UP)]) for i in range(count)])
        made[at + "down_proj"] = torch.stack([of(i, DOWN) for i in range(count)])
    return made


def split(tensors):
    made = {}
    for name, tensor in tensors.items():
        module, end = name.rsplit(".", 1)
        if end not in ("gate_up_proj", "down_proj") or not module.endswith(".experts"):
            made[name] = tensor
            continue
        for index, one in enumerate(tensor):
            parts = one.chunk(2) if end == "gate_up_proj" else [one]
            names = ["gate_proj", "up_proj"] if end == "gate_up_proj" else ["down_proj"]
            for part_name, part in zip(names, parts):
                made[f"{module}.{index}.{part_name}.weight"] = part.contiguous()
    return made


def main():
    forms = {}
    with reference_model.float64_throughout():
        for form, (base, changes, layout) in FORMS.items():
            folder = HERE / "models" / base
            config = json.loads((folder / "config.json").read_text()) | changes
            config = {key: value for key, value in config.items() if key not in changes or value is not None}
            tensors = safetensors.torch.load_file(folder / "model.safetensors")
            if "prefix" in layout:
                start = "model."
                tensors = {layout["prefix"] + name[len(start):] if name.startswith(start) else name: tensor
                           for name, tensor in tensors.items()}
            if "stack" in layout:
                tensors = stacked(tensors, layout["stack"])
            if "split" in layout:
                tensors = split(tensors)
            made = pathlib.Path(tempfile.mkdtemp())
            (made / "config.json").write_text(json.dumps(config))
            safetensors.torch.save_file(tensors, made / "model.safetensors", metadata={"format": "pt"})
            model = reference_model.load(made, torch.float64, "eager")
            with torch.no_grad():
                logits = model(torch.tensor([IDS]), use_cache=False).logits[0, -1]
            shutil.rmtree(made)
            forms[form] = {"base": base, "changes": changes, "layout": layout,
                           "logits": [float(f"{x:.12g}") for x in logits.tolist()]}
            print(form, int(logits.argmax()), float(logits.max()))
    versions = {"torch": torch.__version__, "transformers": transformers.__version__}
    written = json.dumps({"versions": versions, "ids": IDS, "forms": forms})
    (HERE / "forms.json").write_text(written.replace(', "forms": {', ',\n"forms": {\n').replace('}, "', '},\n"') + "\n")


if __name__ == "__main__":
    main()
