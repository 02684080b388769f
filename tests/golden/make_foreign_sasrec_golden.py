"""Trains or makes SASRec in other programs, and ranks all test items there: what gainlens has to agree with.

    python tests/golden/make_foreign_sasrec_golden.py recbole --data FILE.inter --out FOLDER [--epochs 2] [--small]
    python tests/golden/make_foreign_sasrec_golden.py pmixer --data FILE.inter --source CLONE --out FOLDER

recbole needs RecBole 1.2.1 with numpy 1.26.4, pandas 2.2.3, scipy 1.12.0 and torch 2.15.0; pmixer needs torch and a
git clone of github.com/pmixer/SASRec.pytorch, of which it takes the versions below. The folders of tests/golden/foreign
are made with `--data tests/golden/foreign/tiny.inter`: recbole with `--small --out tests/golden/foreign/recbole`,
pmixer with `--out tests/golden/foreign`.

FILE.inter is a file in RecBole's format. Written are the checkpoint as the program saves it, `items.csv` (item, id) and
`ranks.csv` (user, target, rank): 1 + better + half of the equal ones, among all items that the user has not seen.
"""

import argparse
import csv
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import types

import torch


def write_csv(path, header, rows):
    with open(path, "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)


def rank(scores, target, seen):
    """scores [id] without padding at 0; ids"""
    candidate = torch.ones(len(scores), dtype=torch.bool)
    candidate[0] = False
    candidate[list(seen)] = False
    candidate[target] = True
    better = int((scores[candidate] > scores[target]).sum())
    equal = int((scores[candidate] == scores[target]).sum()) - 1
    return 1 + better + 0.5 * equal


def recbole(arguments):
    from recbole.config import Config
    from recbole.data import create_dataset, data_preparation
    from recbole.model.sequential_recommender import SASRec
    from recbole.trainer import Trainer
    from recbole.utils import init_seed

    data = pathlib.Path(arguments.data).resolve()
    name = data.stem
    arguments.out = pathlib.Path(arguments.out).resolve()
    os.chdir(tempfile.mkdtemp())  # RecBole stores its paths in the checkpoint
    work = pathlib.Path("work")
    (work / name).mkdir(parents=True)
    shutil.copy(data, work / name / f"{name}.inter")
    sys.argv = sys.argv[:1]  # RecBole reads the command line
    options = {
        "data_path": str(work),
        "checkpoint_dir": str(work),
        "USER_ID_FIELD": "user_id",
        "ITEM_ID_FIELD": "item_id",
        "TIME_FIELD": "timestamp",
        "load_col": {"inter": ["user_id", "item_id", "timestamp"]},
        "user_inter_num_interval": "[3,inf)",
        "train_neg_sample_args": None,
        "eval_args": {"split": {"LS": "valid_and_test"}, "order": "TO", "mode": "full", "group_by": None},
        "epochs": arguments.epochs,
        "use_gpu": False,
        "show_progress": False,
        "seed": 7,
        "reproducibility": True,
    }
    if arguments.small:
        options |= {"hidden_size": 4, "inner_size": 6, "n_heads": 2, "n_layers": 2, "MAX_ITEM_LIST_LENGTH": 5}
        options |= {"hidden_act": "relu", "initializer_range": 0.5, "train_batch_size": 32}
    config = Config(model="SASRec", dataset=name, config_dict=options)
    init_seed(config["seed"], config["reproducibility"])
    dataset = create_dataset(config)
    training, validation, test = data_preparation(config, dataset)
    model = SASRec(config, training.dataset)
    trainer = Trainer(config, model)
    trainer.fit(training, validation, saved=True, show_progress=False)
    shutil.copy(trainer.saved_model_file, arguments.out / "model.pth")
    stored = torch.load(trainer.saved_model_file, weights_only=False)
    model.load_state_dict(stored["state_dict"])
    model.eval()

    tokens = dataset.field2token_id[dataset.iid_field]
    write_csv(f"{arguments.out}/items.csv", ["item", "id"], tokens.items())
    item_names, user_names = dataset.field2id_token[dataset.iid_field], dataset.field2id_token[dataset.uid_field]
    sequences = histories(data)
    rows = []
    with torch.no_grad():
        # RecBole itself keeps seen items as candidates of sequential models: it gives no history.
        for batch, _, positive_user, positive_item in test:
            scores = model.full_sort_predict(batch).view(len(batch), -1)
            for place, target in zip(positive_user.tolist(), positive_item.tolist()):
                user = str(user_names[int(batch[dataset.uid_field][place])])
                seen = [tokens[item] for item in sequences[user][:-1]]
                rows.append((user, str(item_names[target]), f"{rank(scores[place], target, seen):g}"))
    write_csv(f"{arguments.out}/ranks.csv", ["user", "target", "rank"], rows)
    shutil.rmtree(work)


def histories(path):
    """name -> item names in time order; equal times in the order of the file"""
    found = {}
    with open(path) as file:
        columns = [field.split(":")[0] for field in file.readline().rstrip("\n").split("\t")]
        for line in file:
            values = dict(zip(columns, line.rstrip("\n").split("\t")))
            found.setdefault(values["user_id"], []).append((float(values["timestamp"]), values["item_id"]))
    return {user: [item for _, item in sorted(of, key=lambda pair: pair[0])] for user, of in found.items()}


VERSIONS = {  # commit, path of the model, form
    "pmixer-2020": ("30c43cf", "model.py", {}),
    "pmixer-2024": ("33bc1d8", "model.py", {}),
    "pmixer-post": ("f701731", "python/model.py", {"norm_first": False}),
    "pmixer-pre": ("f701731", "python/model.py", {"norm_first": True}),
}


def pmixer(arguments):
    sequences = {user: items for user, items in histories(arguments.data).items() if len(items) >= 3}
    # Ids in another order than that of the names.
    ids = {item: number for number, item in enumerate(dict.fromkeys(i for of in sequences.values() for i in of), 1)}
    options = {"hidden_units": 6, "num_blocks": 2, "num_heads": 2, "maxlen": 5, "dropout_rate": 0.2, "device": "cpu"}
    for name, (commit, path, more) in VERSIONS.items():
        source = subprocess.run(["git", "-C", arguments.source, "show", f"{commit}:{path}"], check=True,
                                capture_output=True, text=True).stdout
        module = types.ModuleType("model")
        exec(source, module.__dict__)
        torch.manual_seed(11)
        model = module.SASRec(len(sequences), len(ids), types.SimpleNamespace(**options, **more))
        for parameter in model.parameters():
            torch.nn.init.normal_(parameter.data, std=0.5)
        if not name.endswith("2020"):
            model.pos_emb.weight.data[0] = 0
        model.item_emb.weight.data[0] = 0
        model.eval()
        out = pathlib.Path(arguments.out) / name
        out.mkdir(parents=True, exist_ok=True)
        torch.save(model.state_dict(), out / "model.pth")
        (out / "args.txt").write_text("\n".join(f"{k},{v}" for k, v in sorted({**options, **more}.items())))
        write_csv(out / "items.csv", ["item", "id"], ids.items())
        rows = []
        for user, items in sequences.items():
            known, target = [ids[item] for item in items[:-1]], ids[items[-1]]
            seen = known[-options["maxlen"]:]
            padded = [0] * (options["maxlen"] - len(seen)) + seen
            import numpy
            with torch.no_grad():
                everything = numpy.arange(len(ids) + 1)
                scores = model.predict(numpy.array([1]), numpy.array([padded]), everything)[0]
            rows.append((user, items[-1], f"{rank(scores, target, known):g}"))
        write_csv(out / "ranks.csv", ["user", "target", "rank"], rows)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", choices=["recbole", "pmixer"])
    parser.add_argument("--data", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--source", help="clone of SASRec.pytorch")
    given = parser.parse_args()
    pathlib.Path(given.out).mkdir(parents=True, exist_ok=True)
    {"recbole": recbole, "pmixer": pmixer}[given.program](given)
