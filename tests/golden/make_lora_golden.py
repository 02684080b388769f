"""Makes tests/golden/lora: adapters as PEFT writes them, and for each the logits and the gradients of PEFT.

    python tests/golden/make_lora_golden.py tests/golden/lora [NAME...]

PEFT over the field's Python reference implementation (reference_model.py), in float64. Needs torch, transformers and
peft (0.21.2). Every adapter is one of a golden checkpoint, NAME of it before a dot; both factors are drawn, none is 0.

NAME/adapter_config.json and NAME/adapter_model.safetensors are PEFT's save_pretrained. NAME/expected.json holds ids,
logits, and of one fine-tuning step (its rows and its loss are those of make_finetune_golden.py) the loss and two
numbers of the gradient of every factor: its norm, and its product with cos(0), cos(1), ... .
"""

import json
import pathlib
import sys

import peft
import torch
import transformers

import reference_model
from make_family_interventions import FOLDER
from make_finetune_golden import ROWS, rounded

IDS = [1, 5, 9, 30, 31, 2, 17, 40, 3, 3, 22, 8]
# Modules with a factor, as names or as what `target_modules` holds; rank, alpha and what else the configuration says.
ADAPTERS = {
    "llama": ("q_proj k_proj v_proj o_proj gate_proj up_proj down_proj", dict(r=2, lora_alpha=6)),
    "llama.patterns": (
        "q_proj v_proj down_proj",
        dict(
            r=4,
            lora_alpha=5,
            use_rslora=True,
            rank_pattern={"v_proj": 2, "layers.1.mlp.down_proj": 3},
            alpha_pattern={"^model.layers.0.self_attn.q_proj": 9},
        ),
    ),
    # The pattern is of the kind that Unsloth writes.
    "llama.regex": (
        dict(target_modules=r"(?:.*?(?:language|text).*?(?:self_attn|mlp).*?\.(?:q_proj|o_proj))|"
             r"(?:\bmodel\.layers\.[\d]{1,}(?!.*\.experts\.\d)\..*?(?:self_attn|mlp).*?\.(?:(?:q_proj|o_proj|up_proj)))"),
        dict(
            r=4,
            lora_alpha=6,
            exclude_modules=r".*\.1\.self_attn\.o_proj",
            rank_pattern={r"layers\.[12]\.mlp\..*": 2},
            alpha_pattern={r".*(q|o)_proj": 3},
        ),
    ),
    "llama.all-linear": (dict(target_modules="all-linear"), dict(r=2, lora_alpha=6, exclude_modules=["k_proj"])),
    "llama.layers": (
        "q_proj down_proj",
        dict(r=2, lora_alpha=6, layers_to_transform=[0, 2], layers_pattern="layers"),
    ),
    # PEFT writes the weights of the base beside these factors.
    "llama.ends": ("embed_tokens lm_head q_proj", dict(r=2, lora_alpha=6)),
    "qwen2-tied": ("q_proj v_proj", dict(r=2, lora_alpha=3)),
    "gemma3": ("q_proj k_proj v_proj o_proj gate_proj up_proj down_proj", dict(r=2, lora_alpha=6)),
    "qwen3-gate-headwise": ("q_proj o_proj", dict(r=2, lora_alpha=6)),
    "cohere2": ("q_proj k_proj v_proj o_proj", dict(r=2, lora_alpha=6)),
    "gpt2": ("c_attn c_proj c_fc", dict(r=2, lora_alpha=6, fan_in_fan_out=True)),
    "gpt-neox": ("query_key_value dense dense_h_to_4h dense_4h_to_h", dict(r=2, lora_alpha=6)),
    "falcon": ("query_key_value dense", dict(r=2, lora_alpha=6)),
    "phi3-window": ("qkv_proj o_proj gate_up_proj down_proj", dict(r=2, lora_alpha=6)),
}


def load(name):
    # The printed code of gated attention knows the fused attention alone.
    attention = "sdpa" if "gate" in name else "eager"
    model = reference_model.load(FOLDER / name.split(".")[0], torch.float64, attention)
    for module in model.modules():
        if isinstance(module, reference_model.GatedAttention):
            module.gates = []
    return model


def draw(model):
    generator = torch.Generator().manual_seed(7)
    for name, parameter in sorted(model.named_parameters()):
        if ".lora_" in name:
            drawn = torch.randn(parameter.shape, generator=generator) * 0.1  # float32, as the file stores it
            parameter.data.copy_(drawn)


def step(model):
    model.zero_grad()
    losses = []
    for ids, first in ROWS:
        logits = model(input_ids=torch.tensor([ids]), use_cache=False).logits[0].double()
        losses.append(-logits.log_softmax(-1)[first - 1 : -1].gather(1, torch.tensor(ids[first:])[:, None])[:, 0])
    loss = torch.cat(losses).mean()
    loss.backward()
    gradients = {}
    for name, parameter in model.named_parameters():
        if not parameter.requires_grad:
            continue
        flat = parameter.grad.flatten()
        product = flat @ torch.arange(len(flat), dtype=torch.float64).cos()
        gradients[name.replace(".default.", ".")] = [rounded(flat.norm().item()), rounded(product.item())]
    return {"loss": rounded(loss.item()), "gradients": gradients}


def main():
    out = pathlib.Path(sys.argv[1])
    versions = {
        "peft": peft.__version__,
        "torch": torch.__version__,
        "transformers": transformers.__version__,
    }
    with reference_model.float64_throughout():
        for name in sys.argv[2:] or ADAPTERS:
            modules, options = ADAPTERS[name]
            base = load(name)
            targets = modules if isinstance(modules, dict) else dict(target_modules=modules.split())
            config = peft.LoraConfig(task_type="CAUSAL_LM", **targets, **options)
            model = peft.get_peft_model(base, config)
            draw(model)
            model.peft_config["default"].base_model_name_or_path = name.split(".")[0]
            expected = step(model)
            with torch.no_grad():
                logits = model(input_ids=torch.tensor([IDS]), use_cache=False).logits[0].double()
                before = load(name)(torch.tensor([IDS]), use_cache=False).logits[0].double()
            assert (logits - before).abs().max() > 0.01, name
            model.float().save_pretrained(out / name, save_embedding_layers="embed_tokens" in modules)
            (out / name / "README.md").unlink(missing_ok=True)
            (out / name / "adapter_model.safetensors").chmod(0o644)
            file = out / name / "adapter_config.json"
            written = json.loads(file.read_text())
            for key in ("target_modules", "exclude_modules"):  # sets, whose order changes from run to run
                if isinstance(written[key], list):
                    written[key].sort()
            if isinstance(modules, dict):
                written |= modules  # PEFT writes out what "all-linear" means
            file.write_text(json.dumps(written, indent=2, sort_keys=True) + "\n")
            rows = [[rounded(x) for x in row] for row in logits.tolist()]
            expected |= {"versions": versions, "ids": IDS, "logits": rows}
            (out / name / "expected.json").write_text(json.dumps(expected) + "\n")
            print(name, float((logits - before).abs().max()), len(expected["gradients"]))


if __name__ == "__main__":
    main()
