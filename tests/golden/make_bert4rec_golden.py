"""Makes the golden checkpoints of BERT4Rec, plain and with the Bayesian filter.

    python tests/golden/make_bert4rec_golden.py --out tests/golden/recommend

Needs torch, numpy and safetensors (versions are stored in each golden.safetensors). The same versions and machine
give the same bytes. Each folder <out>/bert4rec-<name> holds a small random checkpoint (config.json, model.safetensors
in float32) and `golden.safetensors`, everything in it computed in float64 (bert4rec_reference.py) without dropout:
    sequence_lengths, sequences        as in make_sasrec_golden.py, without MASK
    hidden [position, width]           what the head's embeddings are applied to, of each history with MASK behind it
    scores [user, n]                   scores of items 1 to n at MASK
    hidden_counts [sequence], hidden_places    of the sequences of at least two items, cut to the model's positions
    loss [1], gradient.<parameter>     the Cloze loss of these sequences at these places
and of the arm "bft" what make_filter_golden.py stores, of the histories with MASK.
"""

import argparse
import pathlib

import safetensors.torch
import torch

import bert4rec_reference
import golden_checks
import make_filter_golden
import make_sasrec_golden
import sasrec_reference
from bert4rec_reference import Config, FilterConfig
from filter_reference import Filter

COMMAND = "python tests/golden/make_bert4rec_golden.py --out tests/golden/recommend"
SIZES = {"items": 12, "width": 8, "heads": 2, "inner_width": 16, "positions": 8}
CONFIGS = {
    "pre": Config(**SIZES, layers=2, embedding_norm=True),
    "post": Config(**SIZES, layers=2, norm="post", alignment="start"),
    "bft": FilterConfig(**SIZES, layers=3, arm="bft", filter=Filter(jacobian_rank=4)),
    "bft-sandwich": FilterConfig(
        **SIZES, layers=2, arm="bft", filter=Filter(estimator="sandwich", jacobian_rank=4, most_precision=2000)
    ),
    "bft-per-dimension": FilterConfig(
        **SIZES, layers=2, arm="bft", filter=Filter(kriging="per_dimension", jacobian="exact")
    ),
    "plain-decay": FilterConfig(**SIZES, layers=2, arm="plain-decay"),
}
FIRST_SEED = 81
LENGTHS = (9, 1, 7, 8, 5)  # with 8 positions: cut with and without MASK, full with MASK, full without it


def random_tensors(config, generator):
    """The weights of a checkpoint. MASK has the tau_base of the rarest item."""
    tensors = {
        name: make_filter_golden.random_tensor(name, tensor.shape, generator)
        for name, tensor in bert4rec_reference.model_of(config).state_dict().items()
    }
    if "precision.base" in tensors:
        tensors["precision.base"][-1] = 0
    if "precision.strength" in tensors:
        tensors["precision.strength"] = torch.ones(1)
    return tensors


def random_sequences(config, generator):
    sequences = [torch.randint(1, config.items + 1, (length,), generator=generator).tolist() for length in LENGTHS]
    sequences[0][-3:-1] = [config.items, 1]
    sequences[3][5] = sequences[3][4]
    return sequences


def random_places(sequences, config, generator):
    """Some places of each sequence's kept items, at least one."""
    places = []
    for sequence in sequences:
        kept = min(len(sequence), config.positions)
        drawn = [place for place in range(kept) if torch.rand((), generator=generator) < 0.4]
        places.append(drawn or [kept - 1])
    return places


def training_sequences(sequences):
    return [sequence for sequence in sequences if len(sequence) > 1]


def expected_tensors(model, sequences, places):
    """Everything that golden.safetensors holds. The model is left in training mode."""
    histories = bert4rec_reference.asked(sequences, model.config)
    expected = {
        "sequence_lengths": torch.tensor([len(sequence) for sequence in sequences]),
        "sequences": torch.tensor([item for sequence in sequences for item in sequence]),
        "hidden_counts": torch.tensor([len(of_one) for of_one in places]),
        "hidden_places": torch.tensor([place for of_one in places for place in of_one]),
    }
    with torch.no_grad():
        hidden = make_sasrec_golden.hidden_states(model.train(), histories)
        expected["hidden"] = torch.cat(hidden)
        expected["scores"] = model.scores(torch.stack([rows[-1] for rows in hidden]))
        if getattr(model.config, "arm", "plain") == "bft":
            expected |= make_filter_golden.filter_states(model, histories)
            expected["evaluation_hidden"] = torch.cat(make_sasrec_golden.hidden_states(model.eval(), histories))
            model.train()
    loss = bert4rec_reference.cloze_loss(model, training_sequences(sequences), places)
    golden_checks.add_gradients(model, loss, expected)
    return expected


def check_alone(model, sequences, expected):
    """Checks each history without a column of padding, and that its first item changes what is at MASK."""
    config = model.config
    histories = bert4rec_reference.asked(sequences, config)
    for history, rows in zip(histories, expected["hidden"].split([len(one) for one in histories]), strict=True):
        kept = torch.tensor([history])
        positions = torch.arange(config.positions)[sasrec_reference.columns(len(history), config)]
        with torch.no_grad():
            torch.testing.assert_close(model(kept, positions)[0], rows, rtol=1e-11, atol=1e-11)
            kept[0, 0] = kept[0, 0] % config.items + 1
            assert (model(kept, positions)[0, -1] - rows[-1]).abs().max() > 1e-3


def make_golden(name, config, folder, seed):
    generator = torch.Generator().manual_seed(seed)
    sasrec_reference.save(config, random_tensors(config, generator), folder)
    sequences = random_sequences(config, generator)
    places = random_places(training_sequences(sequences), config, generator)
    model = bert4rec_reference.load(folder, torch.float64)
    expected = expected_tensors(model, sequences, places)
    check_alone(model, sequences, expected)
    golden_checks.check_gradient(
        model,
        lambda: bert4rec_reference.cloze_loss(model, training_sequences(sequences), places),
        expected,
        generator,
    )
    error = golden_checks.worst_error(
        expected_tensors(bert4rec_reference.load(folder, torch.float32), sequences, places), expected
    )
    metadata = golden_checks.provenance(f"bert4rec-{name}", COMMAND)
    safetensors.torch.save_file(expected, folder / "golden.safetensors", metadata=metadata)
    print(f"{name:18} loss {expected['loss'].item():.6f}; worst error in float32 {error:.1e}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, required=True, help="folder to write the golden folders to")
    arguments = parser.parse_args()
    torch.set_num_threads(1)  # sums always in the same order
    for seed, (name, config) in enumerate(CONFIGS.items(), start=FIRST_SEED):
        make_golden(name, config, arguments.out / f"bert4rec-{name}", seed)


if __name__ == "__main__":
    main()
