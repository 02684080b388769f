"""Makes the golden checkpoints and their expected logits and attention statistics.

    python tests/golden/make_model_golden.py --shared-data ../shared/data --out tests/golden/models

Needs torch, transformers and gguf (the versions used are stored in each expected.safetensors). Each folder <out>/<name>
holds a small random checkpoint in Hugging Face layout and `expected.safetensors`. The same versions and machine give
the same bytes. `tinystories-656K` holds only expected outputs: its checkpoint is read from --shared-data.

expected.safetensors, everything computed in float64 (reference_model.py):
    tokens [T] int64
    query_positions [Q], logit_positions [P] int64      positions of the stored queries and logits
    logits [P, vocabulary]
    statistics.<field> [layer, head, Q(, key)]
    statistics.column_mean [layer, head, key]
    statistics.value_variance [layer, kv_head, dimension of values]    repeated in layers with fewer KV heads
    statistics.gate [layer, head, Q]                    only if the model has gates
    statistics.sink_logit_mass [layer, head, Q]         only if the model has sink logits; 0 in layers without them
    float32_error.<name> [1]                            largest error of the reference's own float32 run
    bfloat16_error.<name> [1]                           root mean square error of the reference's own bfloat16 runs, the
                                                        worse of fused and eager; the largest error would be noisy
"""

import argparse
import gzip
import json
import pathlib
import platform
import tempfile

import safetensors.torch
import torch
import transformers

import attention_statistics
import reference_model
from checkpoint_configs import CONFIGS
from random_checkpoint import BOS, make_checkpoint, wrap_in_multimodal

COMMAND = "python tests/golden/make_model_golden.py --shared-data ../shared/data --out tests/golden/models"
NOTHING_IN_FLOAT32 = ("gpt2", "falcon-alibi")  # the reference keeps the model's dtype everywhere in these
LENGTH = 80  # crosses a tile of 64
VOCABULARY = 64


def random_tokens(seed):
    tokens = torch.randint(3, VOCABULARY, (LENGTH,), generator=torch.Generator().manual_seed(seed))
    tokens[0] = BOS
    return tokens


def text_tokens(model_folder, text_file, count):
    """The first `count` tokens of a text, beginning with the BOS of its tokenizer."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(model_folder)
    text = gzip.open(text_file, "rt", encoding="utf-8").read(20 * count)
    tokens = torch.tensor(tokenizer(text)["input_ids"][:count])
    assert len(tokens) == count and tokens[0] == tokenizer.bos_token_id
    return tokens


def collect(run, query_positions, logit_positions):
    """The stored tensors of a run in one flat dictionary."""
    logits, recorder = run
    layers, gates = recorder.statistics, recorder.gates
    stored = {"logits": logits[logit_positions]}
    for field, stacked in reference_model.stacked_statistics(layers).items():
        per_query = field not in ("column_mean", "value_variance")
        stored[f"statistics.{field}"] = stacked[:, :, query_positions] if per_query else stacked
    if gates:
        stored["statistics.gate"] = torch.stack(gates)[:, :, query_positions]
    return stored


def relative_error(found, expected, floor, reduce=torch.max):
    """max |a-b| / max(|b|, floor max|b|), or another summary. NaNs must be at the same places and are left out."""
    known = ~expected.isnan()
    assert torch.equal(known, ~found.isnan())
    if torch.equal(found[known], expected[known]):  # all may be 0: the mass of sinks in a layer without them
        return torch.zeros((), dtype=torch.float64)
    scale = torch.clamp(expected[known].abs(), min=floor * expected[known].abs().max())
    return reduce((found[known] - expected[known]).abs() / scale)


def root_mean_square(errors):
    return errors.pow(2).mean().sqrt()


def errors(found, expected, reduce=torch.max):
    """Error of each stored tensor. Logits are compared with the largest logit, statistics layer by layer."""
    result = {"logits": relative_error(found["logits"], expected["logits"], 1.0, reduce)}
    for name in expected.keys() - {"logits"}:
        layers = [relative_error(a, b, 1e-3, reduce) for a, b in zip(found[name], expected[name], strict=True)]
        result[name] = reduce(torch.stack(layers))
    return result


def check_experts(routed, checkpoint):
    """Checks that the first run chooses experts by a margin, and that all runs choose the same experts.

    `routed` holds the router logits of each run, as a list over layers of [T, expert].
    """
    if not routed[0]:
        return
    chosen = reference_model.read_config(checkpoint)["num_experts_per_tok"]
    for exact, *others in zip(*routed, strict=True):
        ordered = exact.sort(dim=-1, descending=True).values
        assert (ordered[:, chosen - 1] - ordered[:, chosen]).min() > 0.2, "a choice of experts is nearly a tie"
        experts = exact.topk(chosen).indices.sort().values
        assert all(
            torch.equal(other.topk(chosen).indices.sort().values, experts) for other in others
        ), "a rounding changed an expert"


def provenance(name):
    versions = {
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "python": platform.python_version(),
    }
    return json.dumps({"checkpoint": name, "command": COMMAND, "versions": versions}, sort_keys=True)


def describe(name, expected, float32, bfloat16, plain64):
    """Prints one line: how sharp the attention is, and the errors of the reference's other runs."""
    n_eff, first = expected["statistics.n_eff"], expected["statistics.first_mass"][..., 0]
    worst = max(float32, key=lambda key: float32[key] if key != "logits" else 0)
    print(
        f"{name:28} n_eff {n_eff.min():.2f}..{n_eff.max():.1f} p0 {first.min():.1e}..{first[:, :, 1:].max():.5f} "
        f"logits f32 {float32['logits']:.1e} f64 {plain64['logits']:.1e} bf16 {bfloat16['logits']:.1e} "
        f"worst f32 {worst} {float32[worst]:.1e} bf16 {max(bfloat16.values()):.1e}"
    )


def write_expected(name, checkpoint, out, tokens, query_positions, logit_positions):
    """Runs the reference in every precision, checks the runs against each other, and writes expected.safetensors."""

    routed = []

    def stored(dtype, fused):
        run = reference_model.run(checkpoint, dtype, tokens, fused)
        routed.append(run[1].router_logits)
        return collect(run, query_positions, logit_positions)

    fused = reference_model.has_fused_attention(checkpoint)
    with reference_model.float64_throughout():
        expected = stored(torch.float64, fused=False)
    # The unchanged reference computes some parts in float32, so its error is about 1e-6.
    plain64 = errors(stored(torch.float64, fused=False), expected)
    float32 = errors(stored(torch.float32, fused), expected)
    # The reference has two attention functions. The worse of the two counts.
    runs = [errors(stored(torch.bfloat16, choice), expected, root_mean_square) for choice in (fused, False)]
    bfloat16 = {key: max(run[key] for run in runs) for key in expected}
    describe(name, expected, float32, bfloat16, plain64)
    check_experts(routed, checkpoint)
    assert plain64["logits"] < 1e-5 and float32["logits"] < 1e-5, "the float64 run is not the reference's own model"
    assert (plain64["logits"] == 0) == name.startswith(
        NOTHING_IN_FLOAT32
    ), "which parts of the reference are in float32 has changed"
    tensors = {"tokens": tokens, "query_positions": query_positions, "logit_positions": logit_positions} | expected
    tensors |= {f"float32_error.{key}": value.reshape(1) for key, value in float32.items()}
    tensors |= {f"bfloat16_error.{key}": value.reshape(1) for key, value in bfloat16.items()}
    out.mkdir(parents=True, exist_ok=True)
    tensors = {key: tensor.clone().contiguous() for key, tensor in tensors.items()}
    # Only one metadata key, because the file format does not keep the order of several keys.
    safetensors.torch.save_file(tensors, out / "expected.safetensors", metadata={"provenance": provenance(name)})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shared-data", type=pathlib.Path, required=True, help="folder with models/ and wikitext-raw/")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="folder to write the golden folders to")
    parser.add_argument("--only", nargs="*", help="names of the goldens to make; default all")
    arguments = parser.parse_args()
    torch.set_num_threads(1)  # sums always in the same order
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    attention_statistics.check_hand_case()
    attention_statistics.check_sink_case()
    attention_statistics.check_score_case()

    # The first queries, both sides of a tile's edge, and evenly spread queries.
    queries = torch.tensor(sorted({*range(10), *range(0, LENGTH, 3), *range(61, 67), LENGTH - 1}))
    logits = torch.arange(0, LENGTH, 3)
    for seed, (name, config) in enumerate(CONFIGS.items(), start=1):
        if arguments.only and name not in arguments.only:
            continue
        folder = arguments.out / name
        with tempfile.TemporaryDirectory() as text_folder:
            checkpoint = pathlib.Path(text_folder) if "text_config" in config else folder
            make_checkpoint(checkpoint, name, config.get("text_config", config), seed)
            write_expected(name, checkpoint, folder, random_tokens(1000 + seed), queries, logits)
            if checkpoint != folder:
                wrap_in_multimodal(checkpoint, folder, config)

    name, count = "tinystories-656K", 256
    if not arguments.only or name in arguments.only:
        checkpoint = arguments.shared_data / "models" / name
        tokens = text_tokens(checkpoint, arguments.shared_data / "wikitext-raw" / "wiki.valid.raw.gz", count)
        write_expected(
            name, checkpoint, arguments.out / name, tokens, torch.arange(0, count, 8), torch.arange(0, count, 32)
        )


if __name__ == "__main__":
    main()
