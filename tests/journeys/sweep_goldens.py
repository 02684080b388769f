"""Sweeps golden checkpoints with the built program and compares every dataset of their run.h5 with what the reference says.

    python tests/journeys/sweep_goldens.py build/gainlens [NAME...]

needs numpy and h5py. NAME is a folder of tests/golden/models or a file of tests/golden/gguf; without any, all are swept and the counts
printed. Each golden is swept in float64, float32 and bfloat16 at two lengths with --per-query; audit, sink-vs-k and report then read the
run. The expected numbers are computed by tests/golden/sweep_reference.py, which shares nothing with the sweep.
Exit code 1: something differs. 77: no numpy or h5py, or the one golden asked for is shared data that is absent.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

try:
    import h5py
    import numpy as np
except ImportError as error:
    print(f"SKIPPED: {error}; pip install numpy h5py")
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "golden"
SHARED_DATA = pathlib.Path(os.environ.get("GAINLENS_SHARED_DATA", ROOT.parent / "shared" / "data"))
sys.dont_write_bytecode = True
sys.path.insert(0, str(GOLDEN))
import sweep_reference  # noqa: E402

DTYPES = ("float64", "float32", "bfloat16")
BFLOAT16_MARGIN = 0.03  # by how much the sink lemma's bound may be off in bfloat16
REPORTED = "float32"  # the dtype whose run gets a report: its figures take seconds


class Golden:
    """A checkpoint, and what its sweep must give."""

    def __init__(self, name):
        gguf = name.endswith(".gguf")
        twins = json.loads((GOLDEN / "gguf" / "twins.json").read_text())
        folder = GOLDEN / "models" / (twins[name] if gguf else name)
        self.name = name
        self.checkpoint = GOLDEN / "gguf" / name if gguf else folder
        if not gguf and not (folder / "config.json").exists():
            self.checkpoint = SHARED_DATA / "models" / name
        inexact = json.loads((GOLDEN / "gguf" / "provenance.json").read_text())["inexact"]
        # BLOOM's own code writes sqrt(2 / pi) of its gelu with eight digits.
        self.exact = not name.startswith("bloom") and name not in inexact
        stored = sweep_reference.read_safetensors(folder / "expected_sweep.safetensors")
        self.lengths = stored["lengths"].tolist()
        self.tokens = sweep_reference.read_safetensors(folder / "expected.safetensors")["tokens"][: self.lengths[-1]].tolist()
        self.windows = stored["windows"].tolist()
        self.head_dim = int(stored["head_dim"][0])
        self.chunks = sweep_reference.chunks_of(stored)
        self.datasets = sweep_reference.run_datasets(self.chunks)
        self.bfloat16_error = dict(zip(sorted(self.datasets), stored["bfloat16_error"].tolist(), strict=True))
        distances = [sweep_reference.distances(chunk) for chunk in self.chunks.values()]
        # The largest share of a head's queries that bfloat16 may count otherwise.
        self.uncertain = {path: max((of[path] < BFLOAT16_MARGIN).mean(-1).max() for of in distances) for path in sweep_reference.SHARES}

    def coordinates(self):
        """Of every axis, by its name; the axis of queries is one of each length."""
        layers, heads = self.datasets["summary/n_eff"].shape[2:]
        counts = {
            "layer": layers,
            "head": heads,
            "kv_head": self.datasets["values/norm"].shape[3],
            "sample": 1,
            "bin": sweep_reference.BINS,
            "key": sweep_reference.KEYS,
        }
        return {name: list(range(count)) for name, count in counts.items()} | {"length": self.lengths}

    def scales(self):
        """Everything in the file that is no statistic, by its path."""
        scales = self.coordinates()
        groups = {"summary": ("length", "sample", "layer", "head", "key"), "profile": ("length", "sample", "layer", "head", "bin")}
        groups["values"] = ("length", "sample", "layer", "kv_head", "bin", "key")
        groups |= {f"queries/{length}": ("sample", "layer", "head", "key") for length in self.lengths}
        found = dict(scales) | {f"queries/{length}/query": list(range(length)) for length in self.lengths}
        found |= {f"{group}/{name}": scales[name] for group, names in groups.items() for name in names}
        found["complete"] = [[1]] * len(self.lengths)
        found["attention"] = [kind.encode() for kind in self.attention()]
        return found

    def attention(self):
        return ["global" if window == 0 else f"window:{window}" for window in self.windows]

    def request(self, dtype):
        """What the stored request must say of the model."""
        coordinates = self.coordinates()
        return {
            "layers": coordinates["layer"],
            "heads": len(coordinates["head"]),
            "kv_heads": len(coordinates["kv_head"]),
            "head_dim": self.head_dim,
            "attention": self.attention(),
            "gated": "summary/gate" in self.datasets,
            "sink_logits": "summary/sink_logit_mass" in self.datasets,
            "lengths": self.lengths,
            "samples": 1,
            "dtype": dtype,
            "per_query": True,
            "nll": True,
            "bos": None,
        }

    def tolerance(self, dtype, path):
        if path in sweep_reference.SHARES:
            return self.uncertain[path] if dtype == "bfloat16" else 1e-6  # no query is near enough for float32 to count it otherwise
        if dtype == "bfloat16":
            # Twice the reference's own error; of summaries, a few numbers whose error is noisy, four times, of variances eight times.
            factor = 2 if path.startswith(("queries/", "profile/")) else 8 if path.endswith("_var") else 4
            return factor * self.bfloat16_error[path]
        tolerance = 1e-4 if dtype == "float32" else 1e-9 if self.exact else 1e-6
        return 10 * tolerance if path.endswith("_var") else tolerance  # the variance of nearly equal numbers multiplies their errors


def stored_datasets(group, path=""):
    """Every dataset of a file by its path; one that several groups link is there several times."""
    found = {}
    for name, item in group.items():
        found |= {path + name: item} if isinstance(item, h5py.Dataset) else stored_datasets(item, f"{path}{name}/")
    return found


def compare_scales(golden, found, dtype):
    """Complaints about everything in the file that is no statistic; takes it out of `found`."""
    complaints = []
    for path, expected in golden.scales().items():
        dataset = found.pop(path, None)
        if dataset is None or not np.array_equal(dataset[()], expected):
            complaints.append(f"{path}: {'missing' if dataset is None else dataset[()]}; expected {expected}")
    request = json.loads(found.pop("request")[()])
    for key, expected in golden.request(dtype).items():
        if request[key] != expected:
            complaints.append(f"request: {key} is {request[key]}; expected {expected}")
    return complaints


def compare_run(golden, dtype, path):
    """Complaints about a run.h5, the largest error by the tolerance it was granted, and how many datasets were compared."""
    with h5py.File(path) as file:
        found = stored_datasets(file)
        complaints = compare_scales(golden, found, dtype)
        complaints += [f"{extra}: nobody knows what it should hold" for extra in found.keys() - golden.datasets.keys()]
        worst, compared = (0.0, ""), 0
        reduce = sweep_reference.root_mean_square if dtype == "bfloat16" else np.max
        for name, expected in golden.datasets.items():
            if name not in found:
                complaints.append(f"{name}: missing")
                continue
            values, compared = found[name][()], compared + 1
            if values.dtype != (np.float64 if dtype == "float64" else np.float32):
                complaints.append(f"{name}: stored as {values.dtype}")
            error = sweep_reference.error_of_dataset(name, values.astype(np.float64), expected, reduce)
            tolerance = golden.tolerance(dtype, name)
            if error > 0:
                worst = max(worst, (error / tolerance if tolerance else np.inf, name))
            if not error <= tolerance:
                complaints.append(f"{name}: error {error:.2g}; {tolerance:.2g} is allowed")
    return complaints, worst, compared


def compare_report(golden, dtype, path):
    """Complaints about what a report says of the model."""
    told = json.loads(path.read_text())["run"]
    facts = ("layers", "heads", "kv_heads", "head_dim", "attention", "gated", "sink_logits", "dtype")
    return [f"summary.json: {fact} is {told.get(fact)}" for fact in facts if told.get(fact) != golden.request(dtype)[fact]]


def run(program, *arguments, allowed=(0,)):
    """Complaints about one call of the program."""
    result = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"})
    told = result.stderr.strip()
    if "internal error" in told or result.returncode not in allowed or (result.returncode and told.count("\n")):
        return [f"{' '.join(map(str, arguments[:1]))}: exit {result.returncode}: {told}"]
    return []


def sweep(program, golden, dtype, folder):
    """Sweeps one golden in one dtype, and lets everything that reads runs read it: as compare_run."""
    tokens, out = folder / "tokens.json", folder / dtype
    tokens.write_text(json.dumps(golden.tokens))
    lengths = ",".join(map(str, golden.lengths))
    options = ("--tokens", tokens, "--lengths", lengths, "--samples", 1, "--per-query", "--dtype", dtype, "--out", out, "--quiet")
    complaints = run(program, "sweep", golden.checkpoint, *options)
    if complaints:
        return complaints, (np.inf, "sweep"), 0
    complaints, worst, compared = compare_run(golden, dtype, out / "run.h5")
    # A reader may say why this run is too small for it.
    for command in ("audit", "sink-vs-k"):
        complaints += run(program, command, out, allowed=(0, 2))
    if dtype == REPORTED:
        failed = run(program, "report", out)
        complaints += failed or compare_report(golden, dtype, out / "report" / "summary.json")
    return complaints, worst, compared


def check(program, name):
    """Sweeps one golden in every dtype; complaints, and how many chunks and datasets were compared. None where its checkpoint is absent."""
    golden = Golden(name)
    if not golden.checkpoint.exists():
        print(f"{name}: SKIPPED: {golden.checkpoint} is absent")
        return None
    worsts, complaints, compared = [], [], 0
    with tempfile.TemporaryDirectory() as folder:
        for dtype in DTYPES:
            found, worst, datasets = sweep(program, golden, dtype, pathlib.Path(folder))
            complaints += [f"{name} {dtype}: {complaint}" for complaint in found]
            worsts.append(f"{dtype} {worst[0]:.2g} of the tolerance ({worst[1]})")
            compared += datasets
    print(f"{name}: {len(DTYPES)} dtypes x {len(golden.lengths)} lengths, {compared} datasets; worst {', '.join(worsts)}")
    for complaint in complaints:
        print(f"  {complaint}")
    return complaints, len(DTYPES) * len(golden.lengths), compared


def all_names():
    models = [folder.name for folder in (GOLDEN / "models").iterdir()]
    return sorted(models) + sorted(json.loads((GOLDEN / "gguf" / "twins.json").read_text()))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    checked = [result for name in arguments.names or all_names() if (result := check(arguments.program.resolve(), name))]
    if not checked:
        sys.exit(77)
    complaints = sum(len(found) for found, *_ in checked)
    chunks, datasets = (sum(result[which] for result in checked) for which in (1, 2))
    counts = f"{len(checked) * len(DTYPES)} runs, {chunks} chunks, {datasets} datasets compared, {complaints} complaints"
    print(f"{len(checked)} checkpoints x {len(DTYPES)} dtypes: {counts}")
    sys.exit(1 if complaints else 0)


if __name__ == "__main__":
    main()
