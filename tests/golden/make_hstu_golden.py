"""Makes the golden checkpoints of HSTU, plain and with its other arms.

    python tests/golden/make_hstu_golden.py --out tests/golden/hstu

Needs torch, numpy and safetensors (versions are stored in each golden.safetensors). The same versions and machine
give the same bytes. Each folder <out>/<name> holds a small random checkpoint (config.json, model.safetensors in
float32) and `golden.safetensors`, everything in it computed in float64 (hstu_reference.py) without dropout:
    sequence_lengths, sequences, times     items and seconds of each history
    hidden [position, width]               what the head is applied to, of the last items of each history
    scores [user, n]                       scores of items 1 to n after each history
    loss [1], gradient.<parameter>         the loss of these histories
and of the arm "bft" what make_filter_golden.py stores: precision.<layer>, observation_precision.<layer>, gain.<layer>
and evaluation_hidden.
"""

import argparse
import pathlib

import safetensors.torch
import torch

import golden_checks
import hstu_reference
import make_filter_golden
import sasrec_reference
from filter_reference import Filter
from hstu_reference import Config

COMMAND = "python tests/golden/make_hstu_golden.py --out tests/golden/hstu"
SIZES = {"items": 12, "width": 8, "heads": 2, "inner_width": 16, "positions": 8}
LENGTHS = (9, 1, 7, 8, 5)


def config_of(arm="plain", layers=2, model=None, **settings):
    chosen = {"estimator": "sandwich", "output_projection": True, **settings}
    return Config(**SIZES, layers=layers, arm=arm, filter=Filter(**chosen), **(model or {}))


CONFIGS = {
    "plain": config_of(model={"embedding_norm": True}),
    "plain-no-times": config_of(model={"time_bias": False, "alignment": "start"}),
    "plain-reference": config_of(
        model={
            "embedding_factor": "sqrt_width",
            "alignment": "start",
            "norm_epsilon": 1e-6,
            "extra_length": 11,
            "score_scale": "one",
            "attention_norm_weights": False,
            "output": "unit",
            "temperature": 0.2,
        }
    ),
    "ffn": config_of("ffn"),
    "plain-no-wo": config_of("plain-no-wo"),
    "plain-decay": config_of("plain-decay", model={"precision_place": "multiplicative"}),
    "plain-popularity": config_of("plain-popularity"),
    "gate": config_of("gate"),
    "constant-k": config_of("constant-k", decay_owner="head", gain_place="after"),
    "bft": config_of("bft", layers=3, jacobian_rank=4, most_precision=5000),
    "bft-multiplicative": config_of(
        "bft", jacobian="exact", most_precision=5000, model={"precision_place": "multiplicative"}
    ),
    "bft-norm": config_of(
        "bft", layers=3, jacobian="exact", norm_jacobian=True, output_projection=False, most_precision=5000
    ),
    "bft-blend": config_of(
        "bft", jacobian_rank=4, gain_place="after", most_precision=5000, model={"time_bias": False}
    ),
}
# With these seeds no weight is so near to 0, and no precision so near to a bound, that a small step of check_gradient
# moves it across.
SEED, OTHER_SEEDS = 121, {"bft": 122}
STRENGTHS = {"bft-blend": 0.3}


def random_tensors(name, config, generator):
    """The weights of a checkpoint, constants included."""
    tensors = {
        key: make_filter_golden.random_tensor(key, tensor.shape, generator)
        for key, tensor in hstu_reference.Hstu(config).state_dict().items()
    }
    if "precision.strength" in tensors:
        tensors["precision.strength"] = torch.tensor([STRENGTHS.get(name, 1.0)])
    return tensors


def random_histories(config, generator):
    """Items with their seconds. Some lie at the same second; the others from seconds to years apart."""
    histories = []
    for length in LENGTHS:
        items = torch.randint(1, config.items + 1, (length,), generator=generator).tolist()
        gaps = (10 ** (9 * torch.rand(length, generator=generator, dtype=torch.float64) - 1)).floor()
        histories.append(list(zip(items, (1e9 + gaps.cumsum(0)).tolist(), strict=True)))
    histories[0][-3] = (config.items, histories[0][-4][1])
    histories[3][5] = (histories[3][4][0], histories[3][5][1])
    return histories


def kept_rows(rows, histories, config):
    """The rows of the kept items of each history, [position, width]."""
    lengths = [min(len(history), config.positions) for history in histories]
    return [row[sasrec_reference.columns(n, config)] for row, n in zip(rows, lengths, strict=True)]


def expected_tensors(model, histories):
    """Everything that golden.safetensors holds. The model is left in training mode."""
    config = model.config
    items, times = hstu_reference.pad(histories, config)
    expected = {
        "sequence_lengths": torch.tensor([len(history) for history in histories]),
        "sequences": torch.tensor([item for history in histories for item, _ in history]),
        "times": torch.tensor([time for history in histories for _, time in history], dtype=torch.float64),
    }
    with torch.no_grad():
        hidden, every_found, precision = model.train().states(items, times)
        rows = kept_rows(hidden, histories, config)
        expected["hidden"] = torch.cat(rows)
        expected["scores"] = model.scores(torch.stack([row[-1] for row in rows]))
        if config.arm == "bft":
            for layer, found in enumerate([*every_found, {"precision": precision}]):
                for name, values in found.items():
                    expected[f"{name}.{layer}"] = torch.cat(kept_rows(values, histories, config))
            expected["evaluation_hidden"] = torch.cat(kept_rows(model.eval()(items, times), histories, config))
            model.train()
    golden_checks.add_gradients(model, hstu_reference.training_loss(model, histories), expected)
    return expected


def check_alone(model, histories, expected):
    """Checks each history without a column of padding, and that its last item and its last time change nothing before
    them."""
    config = model.config
    lengths = [min(len(history), config.positions) for history in histories]
    for history, rows in zip(histories, expected["hidden"].split(lengths), strict=True):
        kept = history[-config.positions :]
        items = torch.tensor([[item for item, _ in kept]])
        times = torch.tensor([[time for _, time in kept]], dtype=torch.float64)
        positions = torch.arange(config.positions)[sasrec_reference.columns(len(kept), config)]
        with torch.no_grad():
            torch.testing.assert_close(model(items, times, positions)[0], rows, rtol=1e-11, atol=1e-11)
            items[0, -1] = items[0, -1] % config.items + 1
            times[0, -1] += 1e7
            changed = model(items, times, positions)[0]
        torch.testing.assert_close(changed[:-1], rows[:-1], rtol=1e-11, atol=1e-11)
        assert (changed[-1] - rows[-1]).abs().max() > 0.01


def make_golden(name, config, folder, seed):
    generator = torch.Generator().manual_seed(seed)
    sasrec_reference.save(config, random_tensors(name, config, generator), folder)
    histories = random_histories(config, generator)
    model = hstu_reference.load(folder, torch.float64)
    expected = expected_tensors(model, histories)
    check_alone(model, histories, expected)
    golden_checks.check_gradient(
        model, lambda: hstu_reference.training_loss(model, histories), expected, generator
    )
    error = golden_checks.worst_error(
        expected_tensors(hstu_reference.load(folder, torch.float32), histories), expected
    )
    metadata = golden_checks.provenance(name, COMMAND)
    safetensors.torch.save_file(expected, folder / "golden.safetensors", metadata=metadata)
    print(f"{name:18} loss {expected['loss'].item():.6f}; worst error in float32 {error:.1e}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, required=True, help="folder to write the golden folders to")
    arguments = parser.parse_args()
    torch.set_num_threads(1)  # sums always in the same order
    for name, config in CONFIGS.items():
        make_golden(name, config, arguments.out / name, OTHER_SEEDS.get(name, SEED))


if __name__ == "__main__":
    main()
