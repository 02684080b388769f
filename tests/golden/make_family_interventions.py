"""Makes the numbers for tests/interventions/golden_test.cpp: interventions on the golden checkpoints of all families.

    python tests/golden/make_family_interventions.py > tests/golden/family_interventions.json

Hooks in the field's Python reference implementation (reference_model.py), in float64: a head set to zero or to its
mean, the stream of a position and the values of a KV head from another document, a scaled gate where there are gates.
Each intervention runs the whole model. Needs torch and transformers.

For every checkpoint: "tokens" of the document, "donor" of the document that is resampled from, "calibration" of the
document of the means, and for each intervention, and for "native", "nll" and "logits": those of the last position and
every eighth id.
"""

import contextlib
import json
import pathlib
import re
import sys
import tempfile
import textwrap

import torch
import transformers
from transformers.cache_utils import DynamicCache
from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS, eager_mask
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

import reference_model
import reference_own_attention
from checkpoint_configs import CONFIGS
from random_checkpoint import make_checkpoint, same_text_model

FOLDER = pathlib.Path(__file__).parent / "models"
LENGTH = 20
EVERY = 8
OUTPUTS = ("o_proj", "dense", "c_proj", "out_proj")
# Other checkpoints of the same family that differ in what no intervention sees.
SKIPPED = ("quantised", "rope-", "longrope-short", "mixed", "sequential")


class Changes:
    """What is written in the run that follows, and what sites show."""

    def __init__(self):
        self.writes = {}  # {(site, layer): function of [T, ..]}
        self.seen = {}

    def at(self, site, layer, tensor):
        """tensor [T, ..]"""
        self.seen[site, layer] = tensor.clone()
        write = self.writes.get((site, layer))
        return tensor if write is None else write(tensor.clone())


class WatchedCache(DynamicCache):
    """Shows the values [1, kv_head, T, d] of models whose attention is part of their own code."""

    changes = None
    groups = 1  # heads that stand here for one KV head

    def update(self, key_states, value_states, layer_idx, *arguments, **named):
        shared = value_states[0, :: self.groups].transpose(0, 1)
        changed = self.changes.at("attn.hook_v", layer_idx, shared).transpose(0, 1)
        value_states = changed.repeat_interleave(self.groups, dim=0)[None]
        return super().update(key_states, value_states, layer_idx, *arguments, **named)


def layers_of(model, count):
    found = [m for m in model.modules() if isinstance(m, torch.nn.ModuleList) and len(m) == count]
    return found[0]


class Watched:
    def __init__(self, folder):
        self.folder = folder
        config = reference_model.read_config(self.folder)
        self.own = config["model_type"] in reference_own_attention.FAMILIES
        self.changes = Changes()
        self.recorder = reference_model.Recorder(False)
        ALL_ATTENTION_FUNCTIONS.register("recording", self.attention)
        ALL_MASK_ATTENTION_FUNCTIONS.register("recording", eager_mask)
        implementation = "recording"
        if self.own:
            implementation = reference_own_attention.implementation(model_config=config, fused=False)
        self.model = reference_model.load(self.folder, torch.float64, implementation)
        reference_own_attention.use_exact_tables(self.model)
        self.config = self.model.config
        self.layers = layers_of(self.model, self.config.num_hidden_layers)
        self.heads = self.config.num_attention_heads
        gated_families = (*reference_model.GATE_BY_HEAD, *reference_model.GATE_ALONE)
        self.gated = reference_model.is_gated(config) or config["model_type"] in gated_families
        self.attention_layers = []
        for module in self.model.modules():
            if isinstance(module, reference_model.GatedAttention):
                module.gates = self.recorder.gates
        for index, layer in enumerate(self.layers):
            layer.register_forward_pre_hook(self.before_layer(index), with_kwargs=True)
            for name, module in layer.named_modules():
                inside = "attn" in name or "attention" in name
                if inside and "linear_attn" not in name and name.split(".")[-1] in OUTPUTS:
                    module.register_forward_pre_hook(self.before_output(index))
                    self.attention_layers.append(index)

    def before_layer(self, index):
        def hook(module, positional, arguments):
            if positional:
                changed = self.changes.at("hook_resid_pre", index, positional[0][0])[None]
                return (changed, *positional[1:]), arguments
            changed = self.changes.at("hook_resid_pre", index, arguments["hidden_states"][0])[None]
            return positional, {**arguments, "hidden_states": changed}

        return hook

    def before_output(self, index):
        def hook(module, positional):
            rows = positional[0].reshape(LENGTH, self.heads, -1)
            return (self.changes.at("attn.hook_z", index, rows).reshape(positional[0].shape),)

        return hook

    def attention(self, module, query, key, value, *positional, **arguments):
        changed = self.changes.at("attn.hook_v", module.layer_idx, value[0].transpose(0, 1)).transpose(0, 1)[None]
        return self.recorder.attention(module, query, key, changed, *positional, **arguments)

    def run(self, tokens, writes=None):
        """Logits [T, id]."""
        self.changes.writes = writes or {}
        self.changes.seen = {}
        options = {"use_cache": False}
        if self.own:
            cache = WatchedCache(config=self.config)
            cache.changes = self.changes
            if getattr(self.config, "new_decoder_architecture", False):
                cache.groups = self.heads // self.config.num_kv_heads
            options = {"use_cache": True, "past_key_values": cache}
        with torch.no_grad():
            return self.model(torch.tensor(tokens)[None], **options).logits[0]


def interventions(watched):
    first, last = watched.attention_layers[0], watched.attention_layers[-1]
    end = len(watched.layers) - 1
    head = watched.heads - 1
    texts = [
        f"blocks.{first}.attn.hook_z[head={head}]=zero",
        f"blocks.{end}.hook_resid_pre[position=7]=resample",
        f"blocks.{first}.attn.hook_v[head=0]=resample",
    ]
    # The reference shows heads behind their gates.
    texts.append(f"blocks.{last}.attn." + ("hook_gate[head=1]=0.3" if watched.gated else "hook_z[head=0]=mean"))
    if watched.gated:
        texts.append(f"blocks.{end}.hook_resid_pre[position=9]=mean")
    return texts


def write_of(text, donor, calibration):
    layer, site, key, index, value = re.fullmatch(r"blocks\.(\d+)\.([\w.]+)\[(\w+)=(\d+)\]=(.+)", text).groups()
    layer, index = int(layer), int(index)
    site = site.replace("hook_gate", "hook_z")

    def write(tensor):
        place = (slice(None), index) if key == "head" else (slice(index, index + 1),)
        if value == "zero":
            tensor[place] = 0
        elif value == "resample":
            tensor[place] = donor[site, layer][place]
        elif value == "mean":
            mean = calibration[site, layer].mean(dim=0, keepdim=True)
            tensor[place] = mean[:, index] if key == "head" else mean
        else:
            tensor[place] *= float(value)
        return tensor

    return {(site, layer): write}


def result(logits, tokens):
    losses = -logits[:-1].log_softmax(-1).gather(-1, torch.tensor(tokens[1:])[:, None])
    return {"nll": losses.mean().item(), "logits": [float(f"{x:.12g}") for x in logits[-1, ::EVERY].tolist()]}


@contextlib.contextmanager
def decoder_folder(name):
    """The folder of a checkpoint. Of one of text and images that of its text model, made again."""
    config = CONFIGS[name]
    if "text_config" not in config:
        yield FOLDER / name
        return
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place)
        make_checkpoint(folder, name, config["text_config"], seed=list(CONFIGS).index(name) + 1)
        same_text_model(folder, FOLDER / name, config)
        yield folder


def golden(folder):
    watched = Watched(folder)
    generator = torch.Generator().manual_seed(33)
    documents = [torch.randint(3, 64, (LENGTH,), generator=generator).tolist() for _ in range(3)]
    tokens, donor_tokens, calibration_tokens = documents
    watched.run(donor_tokens)
    donor = watched.changes.seen
    watched.run(calibration_tokens)
    calibration = watched.changes.seen
    found = {"native": result(watched.run(tokens), tokens)}
    for text in interventions(watched):
        found[text] = result(watched.run(tokens, write_of(text, donor, calibration)), tokens)
    return {"tokens": tokens, "donor": donor_tokens, "calibration": calibration_tokens, "results": found}


def written(document):
    """JSON with several numbers in a line."""

    def filled(match):
        return "[" + "\n".join(textwrap.wrap(" ".join(match.group(1).split()), 100)) + "]"

    return re.sub(r"\[\s+([^\[\]{}]+?)\s+\]", filled, json.dumps(document, indent=1))


def main():
    names = sys.argv[1:] or sorted(
        folder.name
        for folder in FOLDER.iterdir()
        if (folder / "config.json").exists() and not any(part in folder.name for part in SKIPPED)
    )
    found = {}
    for name in names:
        print(name, file=sys.stderr)
        with decoder_folder(name) as folder, reference_model.float64_throughout():
            found[name] = golden(folder)
    versions = {"torch": torch.__version__, "transformers": transformers.__version__}
    print(written({"versions": versions, "every": EVERY, "checkpoints": found}))


if __name__ == "__main__":
    main()
