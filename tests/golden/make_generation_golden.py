"""Makes the numbers for tests/generation/golden_test.cpp: what greedy decoding of golden checkpoints gives.

    python tests/golden/make_generation_golden.py > tests/golden/generation.json

The field's Python reference implementation (reference_model.py), in float64: its own `generate`, with its own cache.
Needs torch and transformers.

For every checkpoint and prompt: "prompt", the ids; "tokens", the new ids; "logprobs", ln p of each; and "gap", the
smallest difference of the two largest logits of any step. A prompt whose gap is so small that rounding could choose
another token is left out.
"""

import json
import sys

import torch
import transformers

import reference_model
import reference_own_attention
from make_family_interventions import FOLDER

CHECKPOINTS = {  # with the number of tokens of the longest prompt
    "bloom": 30,  # ALiBi
    "cohere2": 40,  # windows, layers without rotation, parallel residual
    "deepseek-v3": 30,  # latent attention, experts in groups
    "gemma2": 40,  # soft caps of scores and logits, windows
    "gemma3": 40,  # windows with a rotation of their own
    "gpt-oss": 40,  # sink logits, experts, windows
    "gpt2": 30,  # learned positions
    "lfm3": 40,  # short convolutions, windows, gates
    "llama": 30,
    "mimo-v2-flash": 40,  # values of another size than keys, KV heads and sinks by layer
    "mpt": 30,  # ALiBi that is rounded
    "phi3-longrope-short": 90,  # grows beyond its original length, 96: other rotations
    "qwen3-next": 30,  # layers of linear attention
}
NEW = 24
PROMPTS = 6
LEAST_GAP = 1e-3  # of logits: far above what float32 rounds


def prompts(vocabulary, longest, generator):
    lengths = [1, 2, longest] + torch.randint(3, longest, (PROMPTS - 3,), generator=generator).tolist()
    return [torch.randint(vocabulary, (length,), generator=generator) for length in lengths]


def load(folder):
    config = reference_model.read_config(folder)
    own = config["model_type"] in reference_own_attention.FAMILIES
    attention = reference_own_attention.implementation(model_config=config, fused=False) if own else "eager"
    model = reference_model.load(folder, torch.float64, attention)
    reference_own_attention.use_exact_tables(model)
    model.generation_config = transformers.GenerationConfig(do_sample=False, use_cache=True)
    return model


def generated(model, prompt):
    steps = []  # what generate() returns itself is rounded to float32
    handle = model.register_forward_hook(lambda module, positional, output: steps.append(output.logits[0, -1]))
    with torch.no_grad():
        # Without a mask it takes ids 0 of the prompt for padding.
        mask = torch.ones_like(prompt[None])
        found = model.generate(prompt[None], attention_mask=mask, max_new_tokens=NEW, pad_token_id=0)
    handle.remove()
    tokens = found[0, len(prompt) :]
    logits = torch.stack(steps[-len(tokens) :])
    assert logits.dtype == torch.float64 and logits.argmax(-1).tolist() == tokens.tolist()
    best = logits.topk(2).values
    logprobs = logits.log_softmax(-1).gather(1, tokens[:, None])[:, 0]
    return {
        "prompt": prompt.tolist(),
        "tokens": tokens.tolist(),
        "logprobs": [float(f"{number:.12g}") for number in logprobs.tolist()],
        "gap": float(f"{(best[:, 0] - best[:, 1]).min().item():.3g}"),
    }


def main():
    result = {"versions": {"torch": torch.__version__, "transformers": transformers.__version__}, "checkpoints": {}}
    with reference_model.float64_throughout():
        for name, longest in CHECKPOINTS.items():
            model = load(FOLDER / name)
            generator = torch.Generator().manual_seed(35)
            made = [generated(model, prompt) for prompt in prompts(model.config.vocab_size, longest, generator)]
            kept = [one for one in made if one["gap"] >= LEAST_GAP]
            print(f"{name}: {len(kept)} of {len(made)} prompts", file=sys.stderr)
            result["checkpoints"][name] = kept
    lines = [f'"versions": {json.dumps(result["versions"])}']
    for name, kept in result["checkpoints"].items():
        rows = ",\n".join("  " + json.dumps(one) for one in kept)
        lines.append(f"{json.dumps(name)}: [\n{rows}\n]")
    print("{" + ",\n".join(lines) + "}")


if __name__ == "__main__":
    main()
