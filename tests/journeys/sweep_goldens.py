"""Sweeps golden checkpoints with the built program and compares every dataset of their run.h5 with the reference.

    python tests/journeys/sweep_goldens.py build/gainlens [--jobs N] [--many-runs LIBRARY] [--shared | --part PART |
      NAME...]

Needs numpy and h5py. NAME is a folder of tests/golden/models or a file of tests/golden/gguf; without a NAME, all are
swept whose checkpoints ship, or with --shared all others. With LIBRARY (tests/support/many_runs.cpp), gainlens-compute
is loaded once for each job and forks for each call: to load it takes longer than most calls.
Each golden is swept at two lengths with --per-query, in float64, float32 and bfloat16. A GGUF file, which has the
weights of a folder, is swept in float32 alone. `--part first`: in float32, and in the other dtypes those that represent
the kinds of layers; `--part rest`: what this leaves out. Then audit, sinks, sink-vs-k and report read the run in
float32. If every dataset of a GGUF file's run has the bits of the folder's run, these commands are not called for it:
they would read the same numbers again. tests/golden/sweep_reference.py computes the expected numbers; it shares nothing
with the sweep.
Each golden gives one line, and one more for each complaint. The last lines count, and name the goldens that failed.
Exit code 1: something differs. 77: numpy or h5py is missing, or all goldens asked for are shared data that are absent.
"""

import argparse
import concurrent.futures
import dataclasses
import functools
import json
import os
import pathlib
import select
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time

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
SINK_MARGIN = {"float64": 1e-6, "float32": 1e-4, "bfloat16": 0.05}  # largest error of a column mean
SINK_THRESHOLD = 0.3  # column mean of the keys that `without_sinks` leaves out
BFLOAT16_MARGIN = 0.03  # largest error of the sink lemma's bound in bfloat16
REPORTED = "float32"  # the dtype whose run is given to all commands: the figures of a report take seconds
# One golden for each kind of attention, of layer and of weights.
REPRESENTATIVES = (
    "bloom deepseek-v3 falcon-groups gemma2 gemma3 gpt-oss-mxfp4 gpt2 lfm2 llama llama-rope-yarn mimo-v2-flash mixtral "
    "phi3-window qwen3-5 qwen3-gate-headwise qwen3-next"
).split()
DRAWN = ("deepseek-v3", "gemma3", "gpt-oss-mxfp4", "gpt2", "lfm2", "llama", "mimo-v2-flash", "qwen3-gate-headwise")
CALL_SECONDS = 300  # of one call of the program; it takes one or two
CACHE = tempfile.TemporaryDirectory()


class Golden:
    """A checkpoint, and the expected result of its sweep."""

    def __init__(self, name, part=None):
        gguf = name.endswith(".gguf")
        twins = json.loads((GOLDEN / "gguf" / "twins.json").read_text())
        folder = GOLDEN / "models" / (twins[name] if gguf else name)
        self.name = name
        self.dtypes = (REPORTED,) if gguf else DTYPES
        if part and name not in REPRESENTATIVES:
            self.dtypes = tuple(dtype for dtype in self.dtypes if (dtype == REPORTED) == (part == "first"))
        elif part == "rest":
            self.dtypes = ()
        self.checkpoint = GOLDEN / "gguf" / name if gguf else folder
        if not gguf and not (folder / "config.json").exists():
            self.checkpoint = SHARED_DATA / "models" / name
        inexact = json.loads((GOLDEN / "gguf" / "provenance.json").read_text())["inexact"]
        # The reference's BLOOM code uses only eight digits of sqrt(2 / pi) in its gelu.
        self.exact = not name.startswith("bloom") and name not in inexact
        stored, self.bfloat16_error = sweep_reference.read_expected(folder)
        self.lengths = stored["lengths"].tolist()
        self.tokens = sweep_reference.read_safetensors(folder / "expected.safetensors")["tokens"][
            : self.lengths[-1]
        ].tolist()
        self.windows = stored["windows"].tolist()
        owner = self.checkpoint if self.checkpoint.is_dir() else folder
        self.absent = not self.checkpoint.exists()  # shared data
        if self.absent:
            return
        config = json.loads((owner / "config.json").read_text())
        self.layers = attention_layers(config.get("text_config", config), len(self.windows))
        self.head_dim = int(stored["head_dim"][0])
        self.kv_heads = stored["kv_heads"].tolist() if "kv_heads" in stored else []
        self.chunks = sweep_reference.chunks_of(stored)
        self.datasets = sweep_reference.run_datasets(self.chunks)
        distances = [sweep_reference.distances(chunk) for chunk in self.chunks.values()]
        # The largest share of a head's queries that may be counted differently in bfloat16.
        self.uncertain = {
            path: max((of[path] < BFLOAT16_MARGIN).mean(-1).max() for of in distances)
            for path in sweep_reference.SHARES
        }

    def coordinates(self):
        """The size of every axis, by its name. Each length has its own axis of queries."""
        heads = self.datasets["summary/n_eff"].shape[3]
        counts = {
            "head": heads,
            "kv_head": self.datasets["values/norm"].shape[3],
            "sample": 1,
            "bin": sweep_reference.BINS,
            "key": sweep_reference.KEYS,
            "rank": sweep_reference.RANKS,
            "largest": sweep_reference.LARGEST,
        }
        scales = {name: list(range(count)) for name, count in counts.items()}
        return scales | {"length": self.lengths, "layer": self.layers}

    def scales(self):
        """All datasets of the file that are not statistics, by their path."""
        scales, others = self.coordinates(), self.other_coordinates()
        groups = {
            "summary": ("length", "sample", "layer", "head", "key"),
            "profile": ("length", "sample", "layer", "head", "bin"),
            "values": ("length", "sample", "layer", "kv_head", "bin", "key"),
            "sinks": ("length", "sample", "layer", "head", "rank"),
            "stream": ("length", "sample", "layer", "largest"),
        }
        found = {name: values for name, (_, values) in others.items()}
        for group, axes in groups.items():
            found |= {f"{group}/{name}": values for name, (own, values) in others.items() if own <= set(axes)}
        groups |= {f"queries/{length}": ("sample", "layer", "head", "key") for length in self.lengths}
        for place, length in enumerate(self.lengths):
            for name, (own, values) in others.items():
                if own <= {"length", *groups[f"queries/{length}"]}:
                    found[f"queries/{length}/{name}"] = values[place] if "length" in own else values
        found |= scales | {f"queries/{length}/query": list(range(length)) for length in self.lengths}
        found |= {f"{group}/{name}": scales[name] for group, names in groups.items() for name in names}
        found["complete"] = [[1]] * len(self.lengths)
        return found

    def other_coordinates(self):
        """The coordinates besides the dimension scales, by their name: axes and values."""
        heads, kv_heads = (len(self.coordinates()[axis]) for axis in ("head", "kv_head"))
        bins = np.arange(sweep_reference.BINS)
        visible = []
        for length in self.lengths:
            queries = np.arange((length + 1) // 2, length)
            seen = [np.mean(queries < window) if window else 1.0 for window in self.windows]
            visible.append([0 if share == 0 else 2 if share == 1 else 1 for share in seen])
        return {
            "attention": ({"layer"}, [kind.encode() for kind in self.attention()]),
            "kv_head_of_head": ({"head"}, np.repeat(range(kv_heads), heads // kv_heads)),
            "bin_begin": ({"bin"}, bins / sweep_reference.BINS),
            "bin_end": ({"bin"}, (bins + 1) / sweep_reference.BINS),
            "token_offset": ({"length", "sample"}, [[0]] * len(self.lengths)),
            "key_0_visible": ({"length", "layer"}, visible),
        }

    def attention(self):
        return ["global" if window == 0 else f"window:{window}" for window in self.windows]

    def request(self, dtype):
        """What the stored request must say of the model."""
        coordinates = self.coordinates()
        by_layer = {"layer_kv_heads": self.kv_heads} if self.kv_heads else {}
        return by_layer | {
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
            # In float32 no query is counted differently: none is near enough to the limit.
            return self.uncertain[path] if dtype == "bfloat16" else 1e-6
        if dtype == "bfloat16":
            # Twice the reference's own error. For summaries, which are few numbers with a noisy error, four times; for
            # variances eight times.
            factor = 2 if path.startswith(("queries/", "profile/")) else 8 if path.endswith("_var") else 4
            return factor * self.bfloat16_error[path]
        tolerance = 1e-4 if dtype == "float32" else 1e-9 if self.exact else 1e-6
        # A variance of nearly equal numbers has a larger relative error than the numbers.
        return 10 * tolerance if path.endswith("_var") else tolerance


def attention_layers(config, count):
    """The layers of softmax attention, of which there are `count`. Others are not measured."""
    types, every = config.get("layer_types", []), config.get("full_attention_interval")
    if not every and config["model_type"] != "lfm3" and "linear_attention" not in types and "conv" not in types:
        return list(range(count))
    layers = range(config["num_hidden_layers"])
    if not types:  # without names, LFM3 has convolutions in odd layers and in the first
        types = [
            "full_attention" if ((layer + 1) % every == 0 if every else layer % 2 == 0 and layer > 0) else "other"
            for layer in layers
        ]
    found = [layer for layer in layers if types[layer] in ("full_attention", "sliding_attention")]
    assert len(found) == count, "the reference has another number of layers of softmax attention"
    return found


def stored_datasets(group, path=""):
    """Every dataset of a file by its path. A dataset that several groups link to appears several times."""
    found = {}
    for name, item in group.items():
        found |= {path + name: item} if isinstance(item, h5py.Dataset) else stored_datasets(item, f"{path}{name}/")
    return found


def compare_scales(golden, found, dtype):
    """Complaints about the datasets that are not statistics. Removes these from `found`."""
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


def compare_sinks(golden, found, dtype):
    """Complaints about /sinks. Removes its datasets from `found`.

    The reference has the weights of the first keys and the values of all keys. So of the first keys it is compared
    which are stored, and with which means; of all keys their tokens, queries and values.
    """
    sinks = {name: found.pop(f"sinks/{name}")[()] for name in sweep_reference.SINKS}
    margin = SINK_MARGIN[dtype]
    complaints = []
    for place, (length, chunk) in enumerate(sorted(golden.chunks.items())):
        for layer, head in np.ndindex(*chunk["n_eff"].shape[:2]):
            window = golden.windows[layer] or length
            expected = sweep_reference.sinks_of_head(chunk, layer, head, window)
            of_head = {name: values[place, 0, layer, head] for name, values in sinks.items()}
            complaints += [
                f"sinks of T {length}, layer {layer}, head {head}: {wrong}"
                for wrong in sweep_reference.wrong_sinks(of_head, expected, golden.tokens, length, window, margin)
            ]
    return complaints[:3]


def compare_without_sinks(golden, found, dtype):
    """Complaints about n_eff and K without sinks of the heads whose only sink is key 0, or that have none.

    Of other heads the reference lacks the weights. Removes the datasets from `found`.
    """
    complaints = []
    position, mean = (found[f"sinks/{name}"][()][:, 0] for name in ("position", "column_mean"))
    for field in ("n_eff", "kalman_gain"):
        name = f"summary/without_sinks_{field}"
        stored = [found.pop(path)[()][:, 0] for path in (name, f"{name}_var")]
        for place, (length, chunk) in enumerate(sorted(golden.chunks.items())):
            for layer, head in np.ndindex(*chunk["n_eff"].shape[:2]):
                sinks = position[place, layer, head][mean[place, layer, head] >= SINK_THRESHOLD]
                if (sinks > 0).any():
                    continue
                source = chunk[f"without_first_{field}" if sinks.size else field][layer, head]
                half = source[(length + 1) // 2 :]
                expected = sweep_reference.mean(half), sweep_reference.variance(half)
                for values, number, path in zip(stored, expected, (name, f"{name}_var"), strict=True):
                    of_first = f"summary/without_first_{field}" + path.removeprefix(name)
                    tolerance = golden.tolerance(dtype, of_first) * (10 if path.endswith("_var") else 1)
                    error = abs(values[place, layer, head] - number) / max(abs(number), 1e-3)
                    if not (error <= tolerance or dtype == "bfloat16" or np.isnan(number)):
                        complaints.append(f"{path}: T {length}, layer {layer}, head {head}: error {error:.2g}")
    return complaints[:3]


def compare_stream(golden, found):
    """Complaints about /stream, of which the reference has no numbers: order and range. Removes it from `found`."""
    stream = {name: found.pop(f"stream/{name}")[()] for name in sweep_reference.STREAM}
    complaints = []
    for place, length in enumerate(golden.lengths):
        for layer in range(len(golden.windows)):
            position, token, dimension, value = (
                stream[name][place, 0, layer] for name in ("position", "token", "dimension", "value")
            )
            sound = (
                len(set(position)) == len(position)
                and (position >= 0).all()
                and (position < length).all()
                and (token == np.array(golden.tokens)[position]).all()
                and (dimension >= 0).all()
                and (np.diff(value) <= 0).all()
                and 0 < stream["median"][place, 0, layer] <= value[0]
            )
            if not sound:
                complaints.append(f"stream of T {length}, layer {layer}: {position} {token} {dimension} {value}")
    return complaints[:3]


def compare_run(golden, dtype, path):
    """Complaints about a run.h5, the largest ratio of error to tolerance, and the number of compared datasets."""
    with h5py.File(path) as file:
        found = stored_datasets(file)
        complaints = compare_scales(golden, found, dtype)
        complaints += compare_without_sinks(golden, found, dtype)
        complaints += compare_sinks(golden, found, dtype) + compare_stream(golden, found)
        complaints += [
            f"{extra}: unexpected dataset"
            for extra in found.keys() - golden.datasets.keys()
            if not sweep_reference.may_lack(extra, golden.datasets)
        ]
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
    """Complaints about the description of the model in a report."""
    told = json.loads(path.read_text())["run"]
    facts = ("layers", "heads", "kv_heads", "layer_kv_heads", "head_dim", "attention", "gated", "sink_logits", "dtype")
    wanted = golden.request(dtype)
    return [f"summary.json: {fact} is {told.get(fact)}" for fact in facts if told.get(fact) != wanted.get(fact)]


def environment():
    """The cache of the person who runs the test is not touched."""
    return os.environ | {"OMP_NUM_THREADS": "1", "XDG_CACHE_HOME": CACHE.name}


class Program:
    """The program, each call in a process of its own."""

    def __init__(self, path):
        self.path = path

    def call(self, words):
        """Exit code (negative: a signal) and stderr."""
        result = subprocess.run(
            [self.path, *words], capture_output=True, text=True, env=environment(), timeout=CALL_SECONDS
        )
        return result.returncode, result.stderr

    def end(self):
        """No process of the program is left."""


class ServedProgram(Program):
    """gainlens-compute, loaded once for each thread, which forks for each call (tests/support/served_main.h)."""

    STREAMS = (198, 199)  # file descriptors of requests and answers in the program
    starting = threading.Lock()

    def __init__(self, path, library):
        super().__init__(path)
        self.library = library
        self.of_thread = threading.local()
        self.started = []  # of all threads: process, and where it reads requests

    def start(self):
        (asked, requests), (answers, answered) = os.pipe(), os.pipe()
        variables = environment() | {"LD_PRELOAD": str(self.library), "GAINLENS_SERVE": "1"}
        with self.starting:
            for own, given in zip((asked, answered), self.STREAMS, strict=True):
                os.dup2(own, given)
            server = subprocess.Popen(
                [f"{self.path}-compute"], env=variables, pass_fds=self.STREAMS, start_new_session=True
            )
            for file in (asked, answered, *self.STREAMS):
                os.close(file)
        self.of_thread.server, self.of_thread.requests, self.of_thread.answers = server, requests, answers
        self.started.append((server, requests))

    def call(self, words):
        if not hasattr(self.of_thread, "server"):
            self.start()
        with tempfile.TemporaryDirectory() as logs:
            files = [f"{logs}/out", f"{logs}/error"]
            told = [os.getcwd(), *files, str(self.path), *words]
            request = b"".join(word.encode() + b"\0" for word in told)
            os.write(self.of_thread.requests, struct.pack("N", len(request)) + request)
            if not select.select([self.of_thread.answers], [], [], CALL_SECONDS)[0]:
                os.killpg(self.of_thread.server.pid, signal.SIGKILL)
                self.start()
                raise subprocess.TimeoutExpired(words, CALL_SECONDS)
            status = int(os.read(self.of_thread.answers, 100))
            return os.waitstatus_to_exitcode(status), pathlib.Path(files[1]).read_text()

    def end(self):
        for server, requests in self.started:
            os.close(requests)
            server.wait()


def run(program, *arguments, allowed=(0,)):
    """Complaints about one call of the program."""
    command = str(arguments[0])
    try:
        code, told = program.call([str(argument) for argument in arguments])
    except subprocess.TimeoutExpired:
        return [f"{command}: not done after {CALL_SECONDS} s"]
    told = told.strip()
    if "internal error" in told or code not in allowed or (code and told.count("\n")):
        return [f"{command}: exit {code}: {told}"]
    return []


def same_numbers(first, second):
    """Whether two runs hold the same: every dataset bit for bit, and requests that differ in the model's name alone."""
    with h5py.File(first) as one, h5py.File(second) as other:
        left, right = stored_datasets(one), stored_datasets(other)
        if left.keys() != right.keys() or dict(one.attrs) != dict(other.attrs):
            return False
        requests = [json.loads(datasets.pop("request")[()]) | {"model": None} for datasets in (left, right)]
        return requests[0] == requests[1] and all(
            left[path].dtype == right[path].dtype and equal_bits(left[path][()], right[path][()]) for path in left
        )


def equal_bits(left, right):
    left, right = np.asarray(left), np.asarray(right)
    if left.dtype == object:  # texts
        return left.tolist() == right.tolist()
    return left.shape == right.shape and left.tobytes() == right.tobytes()


@dataclasses.dataclass
class Result:
    """What was found out about one golden."""

    name: str
    complaints: list = dataclasses.field(default_factory=list)
    worsts: list = dataclasses.field(default_factory=list)  # for each dtype, in words
    dtypes: int = 0
    chunks: int = 0
    datasets: int = 0
    read_before: bool = False  # the run equals that of the twin, which every command has read
    absent: pathlib.Path | None = None  # the checkpoint, where it is shared data that is not on this machine
    seconds: float = 0

    def lines(self):
        if self.absent:
            yield f"SKIPPED: {self.name} needs shared data: {self.absent} is absent"
            return
        verdict = "FAILED" if self.complaints else "ok"
        swept = f"{self.dtypes} dtypes, {self.chunks} chunks, {self.datasets} datasets"
        same = "; the run of its twin" if self.read_before else ""
        yield f"{verdict:6} {self.name}: {swept}; worst {', '.join(self.worsts)}{same}; {self.seconds:.1f} s"
        for complaint in self.complaints:
            yield f"       {self.name} {complaint}"


def sweep(program, golden, dtype, folder, twin, result):
    """Sweeps one golden in one dtype, and lets every command that reads runs read it; adds to `result`.

    `twin`: the run.h5 of the same weights that these commands have read already, or None. Returns the run.h5.
    """
    tokens, out = folder / "tokens.json", folder / dtype
    tokens.write_text(json.dumps(golden.tokens))
    lengths = ",".join(map(str, golden.lengths))
    options = (
        "--tokens",
        tokens,
        "--lengths",
        lengths,
        "--samples",
        1,
        "--per-query",
        "--dtype",
        dtype,
        "--out",
        out,
        "--quiet",
    )
    complaints = run(program, "sweep", golden.checkpoint, *options)
    worst, compared = (np.inf, "sweep"), 0
    if not complaints:
        complaints, worst, compared = compare_run(golden, dtype, out / "run.h5")
        if dtype == REPORTED and twin and same_numbers(twin, out / "run.h5"):
            result.read_before = True
        elif dtype == REPORTED:
            # A command may refuse the run as too small, with a reason.
            for command in ("audit", "sinks", "sink-vs-k"):
                complaints += run(program, command, out, allowed=(0, 2))
            # The numbers are compared, not the drawings, which would take most of the time.
            style = out / "style.json"
            figures = {} if golden.name in DRAWN else {"figures": ["sink-map"]}
            style.write_text(json.dumps({"formats": ["svg"]} | figures))
            failed = run(program, "report", out, "--style", style)
            complaints += failed or compare_report(golden, dtype, out / "report" / "summary.json")
    result.complaints += [f"{dtype}: {complaint}" for complaint in complaints]
    result.worsts.append(f"{dtype} {worst[0]:.2g} of the tolerance ({worst[1]})")
    result.dtypes += 1
    result.chunks += len(golden.lengths)
    result.datasets += compared
    return out / "run.h5"


def check(program, part, name, folder, twin):
    """Sweeps one golden in every dtype of the part.

    Returns the result, and the run.h5 in the reported dtype, if it is sound.
    """
    start, result, reported = time.monotonic(), Result(name), None
    try:
        golden = Golden(name, part)
        if golden.absent:
            result.absent = golden.checkpoint
            return result, None
        for dtype in golden.dtypes:
            path = sweep(program, golden, dtype, folder, twin, result)
            if dtype == REPORTED and not result.complaints:
                reported = path
    except Exception as error:  # what one golden breaks must not hide the others
        result.complaints.append(f"the check itself failed: {type(error).__name__}: {error}")
    result.seconds = time.monotonic() - start
    return result, reported


def check_twins(program, part, names):
    """Checks goldens of the same weights, the folder first. Prints and returns their results."""
    results, twin = [], None
    if part == "rest":
        names = [name for name in names if name not in REPRESENTATIVES and not name.endswith(".gguf")]
    with tempfile.TemporaryDirectory() as place:
        for name in names:
            folder = pathlib.Path(place) / name
            folder.mkdir()
            result, run_file = check(program, part, name, folder, twin)
            twin = twin or run_file
            print("\n".join(result.lines()), flush=True)
            results.append(result)
    return results


def groups_of(names, shared):
    """The given goldens, those of the same weights together, the folder first.

    If none is given: all whose checkpoints ship, or all others, which are `shared` data.
    """
    twins = json.loads((GOLDEN / "gguf" / "twins.json").read_text())
    folders = {folder.name: not (folder / "config.json").exists() for folder in (GOLDEN / "models").iterdir()}
    asked_for = [name for name in sorted(folders) + sorted(twins) if folders[twins.get(name, name)] == shared]
    groups = {}
    for name in names or asked_for:
        groups.setdefault(twins.get(name, name), []).append(name)
    return [sorted(group, key=lambda name: name in twins) for group in groups.values()]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--jobs", type=int, default=1, help="goldens at a time; the program does most of the work")
    parser.add_argument("--shared", action="store_true", help="the goldens whose checkpoints do not ship")
    parser.add_argument("--part", choices=("first", "rest"), help="of the dtypes; default: all")
    parser.add_argument("--many-runs", type=pathlib.Path, help="library that lets one loaded program do many calls")
    arguments = parser.parse_intermixed_args()
    if arguments.shared and arguments.names:
        parser.error("--shared: names all goldens that do not ship; leave it out beside NAME")
    if arguments.part and (arguments.shared or arguments.names):
        parser.error("--part: of all goldens that ship; leave it out beside --shared and NAME")
    path, library = arguments.program.resolve(), arguments.many_runs
    program = ServedProgram(path, library.resolve()) if library else Program(path)
    work = functools.partial(check_twins, program, arguments.part)
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        results = [result for group in pool.map(work, groups_of(arguments.names, arguments.shared)) for result in group]
    program.end()
    checked = [result for result in results if not result.absent]
    if not checked:
        sys.exit(77)
    runs, chunks, datasets = (sum(getattr(of, key) for of in checked) for key in ("dtypes", "chunks", "datasets"))
    complaints = sum(len(result.complaints) for result in checked)
    unheld = sweep_reference.fields_without_golden(GOLDEN / "models")
    for field in unheld:
        print(f"{field}: no golden holds it; make_sweep_golden.py --add {field}")
    complaints += len(unheld)
    counts = f"{runs} runs, {chunks} chunks, {datasets} datasets compared, {complaints} complaints"
    print(f"{len(checked)} checkpoints: {counts}")
    print(f"{sum(result.read_before for result in checked)} GGUF files gave the run of their twins, bit for bit")
    if failed := [result.name for result in checked if result.complaints]:
        print(f"FAILED: {', '.join(failed)}")
    if complaints:
        sys.exit(1)


if __name__ == "__main__":
    main()
