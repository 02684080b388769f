"""Makes expected_sweep.safetensors of every golden checkpoint: the reference's numbers for every query of the chunks of
a sweep.

    python tests/golden/make_sweep_golden.py --shared-data ../shared/data --models tests/golden/models

Has the same requirements as make_model_golden.py, and uses the checkpoints and tokens that it made. From the file,
sweep_reference.py computes every dataset in the run.h5 of a sweep at lengths 16 and 48. All numbers are computed in
float64:
    lengths [2], windows [layer], head_dim [1]    int64; window 0: the layer sees all keys
    kv_heads [layer]                              int64; only if layers have different numbers of KV heads. Then each KV
                                                  head of a layer with fewer stands several times in a row below
    48.<field> [layer, head, query(, key)], 48.value_norm [layer, kv_head, key], 48.nll [47]
                                                  for 48 tokens; the first entries are those for 16 tokens
    16.<field>, 48.<field>                        kalman_gain_scaled, and value_variance [layer, kv_head], mean over
                                                  dimensions
    bfloat16_error [dataset]                      root mean square error of the reference's own runs, the worse of fused
                                                  and eager; datasets sorted by name
"""

import argparse
import functools
import json
import pathlib
import platform
import tempfile

import safetensors.torch
import torch
import transformers

import random_checkpoint
import reference_model
import sweep_reference
from checkpoint_configs import CONFIGS

COMMAND = "python tests/golden/make_sweep_golden.py --shared-data ../shared/data --models tests/golden/models"
LENGTHS = (16, 48)
# No dataset of a run is computed from these.
NOT_STORED = ("without_first_residual", "without_first_observation_precision", "column_mean")
OTHER_FREQUENCIES = ("phi3-longrope-long",)  # the rotation at 80 tokens (expected.safetensors) differs from that at 48


def chunk_of(run, tokens):
    """The chunk of sweep_reference.py, as tensors."""
    logits, recorder = run
    chunk = reference_model.stacked_statistics(recorder.statistics)
    chunk = {field: tensor for field, tensor in chunk.items() if field not in NOT_STORED}
    chunk["value_variance"] = chunk["value_variance"].mean(-1)
    chunk["value_norm"] = reference_model.stacked(recorder.value_norms)
    chunk["nll"] = -logits[:-1].log_softmax(-1).gather(1, tokens[1:, None])[:, 0]
    if recorder.gates:
        chunk["gate"] = torch.stack(recorder.gates)
    return chunk


def assert_close(found, expected, what):
    torch.testing.assert_close(
        found, expected, rtol=1e-10, atol=1e-11, equal_nan=True, msg=lambda text: f"{what}: {text}"
    )


def check_prefix(chunks):
    """Checks that the shorter chunk is the start of the longer one, except for fields that depend on all tokens."""
    shorter, longer = (chunks[length] for length in LENGTHS)
    for field, tensor in shorter.items():
        if field == "nll":
            assert_close(longer[field][: LENGTHS[0] - 1], tensor, field)
        elif field not in sweep_reference.WHOLE_CHUNK:
            assert_close(longer[field][:, :, : LENGTHS[0]], tensor, field)


def check_against_model_golden(name, chunk, golden):
    """Checks that the numbers agree with expected.safetensors where both files have them."""
    if name in OTHER_FREQUENCIES:
        return
    kept = golden["query_positions"] < LENGTHS[-1]
    positions = golden["query_positions"][kept]
    compared = 0
    for field, tensor in chunk.items():
        stored = golden.get(f"statistics.{field}")
        if stored is not None and field not in sweep_reference.WHOLE_CHUNK:
            assert_close(tensor[:, :, positions], stored[:, :, kept], field)
            compared += 1
    assert compared >= 11, "fields have other names"


def margin(chunks):
    """How near any query of the chunks is to being counted differently in one of the shares."""
    return min(distance.min() for chunk in chunks.values() for distance in sweep_reference.distances(chunk).values())


def bfloat16_errors(found, expected):
    """The root mean square error of each dataset, by its path. Chunks are given by length."""
    run, exact = sweep_reference.run_datasets(found), sweep_reference.run_datasets(expected)
    errors = {
        path: sweep_reference.error_of_dataset(path, run[path], exact[path], sweep_reference.root_mean_square)
        for path in exact
    }
    # The likelihood is one number per chunk, which may be near by chance. The error of its positions is used instead.
    losses = [(found[length]["nll"], expected[length]["nll"]) for length in LENGTHS]
    errors["summary/nll"] = max(sweep_reference.root_mean_square(a - b) / b.mean() for a, b in losses)
    return errors


def run_chunks(checkpoint, dtype, tokens, fused):
    """Chunks by length, as tensors and as arrays, and the Recorder of the longest."""
    chunks = {}
    for length in LENGTHS:
        run = reference_model.run(checkpoint, dtype, tokens[:length], fused)
        chunks[length] = chunk_of(run, tokens[:length])
    return chunks, arrays_of(chunks), run[1]


def arrays_of(chunks):
    return {length: {field: tensor.numpy() for field, tensor in chunk.items()} for length, chunk in chunks.items()}


def write_added(field, name, checkpoint, folder):
    """Writes expected_sweep-FIELD.safetensors: a field that older goldens lack. They stay as they are."""
    tokens = safetensors.torch.load_file(folder / "expected.safetensors")["tokens"]
    known, _ = sweep_reference.read_expected(folder)
    with reference_model.float64_throughout():
        chunks, arrays, _ = run_chunks(checkpoint, torch.float64, tokens, fused=False)
    if field not in chunks[LENGTHS[-1]]:
        return  # of layers that this model does not have
    for key, tensor in chunks[LENGTHS[-1]].items():
        if key != field:
            assert_close(tensor, torch.from_numpy(known[f"{LENGTHS[-1]}.{key}"].copy()), f"{name}: {key}")
    runs = [
        bfloat16_errors(run_chunks(checkpoint, torch.bfloat16, tokens, fused)[1], arrays)
        for fused in (reference_model.has_fused_attention(checkpoint), False)
    ]
    paths = [path for path in runs[0] if path.split("/")[-1].startswith(field)]
    lengths = LENGTHS if field in sweep_reference.WHOLE_CHUNK else LENGTHS[-1:]
    stored = {f"{length}.{field}": chunks[length][field].clone().contiguous() for length in lengths}
    stored |= {
        f"bfloat16_error.{path}": torch.tensor([max(run[path] for run in runs)], dtype=torch.float64) for path in paths
    }
    safetensors.torch.save_file(stored, folder / f"expected_sweep-{field}.safetensors")
    print(f"{name:28} {field}: {len(paths)} datasets")


def write_expected(name, checkpoint, folder):
    golden = safetensors.torch.load_file(folder / "expected.safetensors")
    tokens = golden["tokens"]
    with reference_model.float64_throughout():
        chunks, arrays, recorder = run_chunks(checkpoint, torch.float64, tokens, fused=False)
    check_prefix(chunks)
    check_against_model_golden(name, chunks[LENGTHS[-1]], golden)
    assert margin(arrays) > 1e-6, "rounding in float32 could change a count"

    runs = [
        bfloat16_errors(run_chunks(checkpoint, torch.bfloat16, tokens, fused)[1], arrays)
        for fused in (reference_model.has_fused_attention(checkpoint), False)
    ]
    errors = {path: max(run[path] for run in runs) for path in sorted(runs[0])}
    stored = {
        "lengths": torch.tensor(LENGTHS),
        "windows": torch.tensor(recorder.windows),
        "head_dim": golden["statistics.value_variance"].shape[-1:].numel() * torch.ones(1, dtype=torch.int64),
        "bfloat16_error": torch.tensor(list(errors.values()), dtype=torch.float64),
    }
    kv_heads = torch.tensor([len(norms) for norms in recorder.value_norms])
    if kv_heads.min() < kv_heads.max():
        stored["kv_heads"] = kv_heads
    stored |= {f"{LENGTHS[-1]}.{field}": tensor for field, tensor in chunks[LENGTHS[-1]].items()}
    stored |= {
        f"{length}.{field}": chunks[length][field] for length in LENGTHS for field in sweep_reference.WHOLE_CHUNK
    }
    stored = {key: tensor.clone().contiguous() for key, tensor in stored.items()}
    versions = {
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "python": platform.python_version(),
    }
    provenance = json.dumps({"checkpoint": name, "command": COMMAND, "versions": versions}, sort_keys=True)
    safetensors.torch.save_file(stored, folder / "expected_sweep.safetensors", metadata={"provenance": provenance})
    worst = max(errors, key=errors.get)
    print(f"{name:28} {len(errors)} datasets, margin {margin(arrays):.1e}, worst bfloat16 {worst} {errors[worst]:.2g}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shared-data", type=pathlib.Path, required=True, help="folder with models/")
    parser.add_argument("--models", type=pathlib.Path, required=True, help="the golden folders")
    parser.add_argument("--only", nargs="*", help="names of the goldens to make; default all")
    parser.add_argument("--add", help="a field of sweep_reference.ADDED: only its files are made")
    arguments = parser.parse_args()
    assert arguments.add is None or arguments.add in sweep_reference.ADDED, f"{arguments.add} is not in ADDED"
    write = functools.partial(write_added, arguments.add) if arguments.add else write_expected
    torch.set_num_threads(1)  # sums always in the same order
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    for seed, (name, config) in enumerate(CONFIGS.items(), start=1):
        if arguments.only and name not in arguments.only:
            continue
        folder = arguments.models / name
        with tempfile.TemporaryDirectory() as text_folder:
            checkpoint = folder
            if "text_config" in config:
                checkpoint = pathlib.Path(text_folder)
                random_checkpoint.make_checkpoint(checkpoint, name, config["text_config"], seed)
                random_checkpoint.same_text_model(checkpoint, folder, config)
            write(name, checkpoint, folder)
    name = "tinystories-656K"
    if not arguments.only or name in arguments.only:
        write(name, arguments.shared_data / "models" / name, arguments.models / name)


if __name__ == "__main__":
    main()
