#!/usr/bin/env python3
"""Makes the paper's tables and figures with gainlens, and docs/reproduction.md of what has been made.

list                 the parts, and which of them have a run
run PART...          trains and reads them; a call that was stopped is continued
record PART...|all   reads the runs that exist, and writes the page
page [--check]       writes docs/reproduction.md from data/reproduction/results.json; --check: is it the same?
"""

import argparse
import hashlib
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

import readers
from parts import FILES, PARTS

ROOT = pathlib.Path(__file__).resolve().parents[2]
RESULTS = "data/reproduction/results.json"
PAGE = "docs/reproduction.md"


INTRODUCTION = """\
# The paper, reproduced

After this page you can repeat each table and figure of the paper ("Precision Tracked Transformer", `bft.tex`), and see
what came out here. `scripts/reproduce` writes this page; do not edit it.

Sizes are what was run. Hours are of one processor core, for what the command asks for: measured for SASRec on
Instruments, Beauty and Sports; estimated from these for other recommenders, and for fine-tuning from the products of a
step of Gemma 3 270M. A checksum is that of the file that was read.

```sh
scripts/reproduce list
scripts/reproduce run sasrec-instruments    # prints and runs its commands; continues if it was stopped
```

`{data}` is the folder of the [data](test-data.md) (`--data`, or `GAINLENS_SHARED_DATA`) and `{runs}` that of the runs
(`--runs`). Intervals are 95% over seeds and test items (users with the same test item err together:
[inference](inference.md)), p is theirs; the paper's p is a paired t over seeds. What the gains mean: [BFT](bft.md).
Toys, Games, ML-1M, the training file of SQuAD and the passages that Contriever has retrieved for NQ-Open are public,
and not among the test data: bring them under the names in the commands.

The paper's 25,598 users of Sports are a misprint, from which its mean length and density follow (296,337 / 25,598 =
11.6). The longest histories differ too; why is not known.

| part | in the paper | run here | hours |
| --- | --- | --- | --- |"""


class Refused(Exception):
    """One line for the user, and exit code 2."""


def words_of(command, folders):
    """The command with its folders, and with the program that was built."""
    words = [word.format(**folders) for word in shlex.split(command)]
    assert words[0] == "gainlens"
    return [folders["program"], *words[1:]]


def source_of(part, folders):
    """What the last command reads: the run.h5 that the first one makes, or a data set."""
    words = words_of(part.commands[0], folders)
    return pathlib.Path(words[words.index("--out") + 1], "run.h5") if "--out" in words else pathlib.Path(words[2])


def is_there(part, folders):
    return source_of(part, folders).exists()


def chosen(names):
    known = {part.id: part for part in PARTS}
    for name in names:
        if name not in known:
            raise Refused(f"{name}: no part has this name; see: scripts/reproduce list")
    return [known[name] for name in names]


def call(words, output=None):
    if not pathlib.Path(words[0]).exists():
        raise Refused(f"{words[0]}: no such program; build it: scripts/build")
    print("+", shlex.join(words), file=sys.stderr)
    finished = subprocess.run(words, cwd=ROOT, stdout=output, check=False)
    if finished.returncode != 0:
        sys.exit(finished.returncode)
    return finished.stdout


def read(part, folders):
    """The figures of the run, as the last command gives them."""
    words = words_of(part.commands[-1], folders)
    if "--json" in words:
        text = call(words, subprocess.PIPE)
    else:
        call(words, sys.stderr)
        text = pathlib.Path(words[words.index("--out") + 1], "summary.json").read_text()
    figures = json.loads(text)
    readers.check(part, figures)
    rows, size = readers.read(part.reader, figures)
    if part.paper:
        if len(rows) != len(part.paper):
            raise Refused(f"{part.id}: the run has {len(rows)} of the {len(part.paper)} rows that the paper prints; "
                          f"continue it: scripts/reproduce run {part.id}")
        rows = [(what, paper, here) for (what, _, here), paper in zip(rows, part.paper)]
    source = source_of(part, folders)
    if words[1] == "sweep":  # what it has written
        source = pathlib.Path(words[words.index("--out") + 1], "run.h5")
    return {"size": size, "rows": rows, "file": source.name, "sha256": hashlib.sha256(source.read_bytes()).hexdigest()}


def known_results(file):
    """What was recorded before."""
    try:
        results = json.loads(file.read_text())
        shaped = all({"size", "rows", "file", "sha256"} <= set(result) for result in results.values())
    except (OSError, ValueError, AttributeError, TypeError) as fault:
        raise Refused(f"{file}: cannot be read as results: {fault}") from fault
    if not shaped:
        raise Refused(f"{file}: holds an entry without its figures; delete the entry, and record its run again")
    unknown = set(results) - {part.id for part in PARTS}
    if unknown:
        raise Refused(f"{file}: holds {', '.join(sorted(unknown))}, which is no part; delete the entry")
    return results


def write(file, text):
    """Whole or not at all."""
    new = file.with_name(file.name + ".new")
    try:
        new.write_text(text)
        new.replace(file)
    except OSError as fault:
        raise Refused(f"{file}: cannot be written: {fault.strerror}") from fault


def check_page(file):
    """A page is replaced only if this script has written it."""
    if file.exists() and not file.read_text(errors="replace").startswith(INTRODUCTION[:20]):
        raise Refused(f"{file}: exists, and is no page of this script")
    if not file.parent.is_dir():
        raise Refused(f"{file.parent}: no such folder")


def record(parts, folders):
    check_page(folders["page"])
    file = folders["results"]
    results = known_results(file) if file.exists() else {}
    for part in parts:
        results[part.id] = read(part, folders)
        results = {known.id: results[known.id] for known in PARTS if known.id in results}
        write(file, json.dumps(results, indent=1, ensure_ascii=False) + "\n")
    write(folders["page"], page(results))


def cell(text):
    return str(text).replace("|", "\\|")


EVIDENCE = """
## Gains, density and measured n_eff

The paper says that the largest gains appear where n_eff is smallest, on the sparsest data. n_eff is of plain SASRec, at
the position that ranks; the gain is that of HR@10 over plain SASRec.

| data | density | items of a user, with the two held out | n_eff of the heads | gain in the paper | gain here | of |
| --- | --- | --- | --- | --- | --- | --- |"""


def evidence(results):
    """The table of what was recorded of each data set; nothing if there is none."""
    lines = []
    for data in FILES:
        gains, sizes, heads = (results.get(f"{kind}-{data.lower()}") for kind in ("sasrec", "data", "n-eff"))
        if not (gains and sizes and heads):
            continue
        size = {what: here for what, _, here in sizes["rows"]}
        found = [here.split(" ")[0] for what, _, here in heads["rows"] if what.startswith("n_eff,")]
        paper, here = (text.partition(": ")[2] for text in gains["rows"][0][1:])
        lines.append(f"| {data} | {size['density']} | {size['mean length of a history']} | "
                     f"{min(found, key=float)} to {max(found, key=float)} | {paper} | {here} | {gains['size']} |")
    return [EVIDENCE, *lines] if lines else []


NOT_RUN = """
## Not run

No run of these parts was read into this page. Their commands stand in `data/reproduction/parts.py`.

| in the paper | parts | hours |
| --- | --- | --- |"""


def not_run(results):
    """The parts without figures, a row for each table or figure of the paper; nothing if there is none."""
    places = {}
    for part in PARTS:
        if part.id not in results:
            places.setdefault(part.place, []).append(part)
    lines = []
    for place, parts in places.items():
        hours = list(dict.fromkeys(part.hours for part in parts))
        lines.append(f"| {place} | {', '.join(part.id for part in parts)} | {'; '.join(hours)} |")
    return [NOT_RUN, *lines] if lines else []


def by_group(rows):
    """The heading of the first column, and the rows: the numbers of one group of users, or of one head, in one row."""
    groups = {}
    for what, paper, here in rows:
        number, place, group = re.fullmatch(r"(.*?)(?:, (group|layer) (.*))?", what).groups()
        groups.setdefault(f"{place} {group}" if place else what, []).append((number, paper, here))
    numbers = [", ".join(cells) for cells, *_ in (zip(*of) for of in groups.values())]
    if len(groups) == len(rows) or len(set(numbers)) > 1:
        return "", rows
    made = []
    for group, cells in groups.items():
        _, papers, ours = zip(*cells)
        made.append((group, papers[0] if set(papers) == {readers.NOTHING} else ", ".join(papers), ", ".join(ours)))
    return numbers[0], made


def page(results):
    lines = [INTRODUCTION]
    for part in PARTS:
        if part.id in results:
            size = results[part.id]["size"]
            lines.append(f"| [{part.id}](#{part.id}) | {part.place} | {size} | {part.hours} |")
    lines += not_run(results)
    lines += evidence(results)
    told = {}
    for part in PARTS:
        if part.id not in results:
            continue
        result = results[part.id]
        asked = re.search(r"--seeds (\d+)", part.commands[0])
        fewer = asked and not result["size"].startswith(f"{asked[1]} seed")
        lines += ["", f"## {part.id}", f"{part.place}. {part.title}; {result['size']}" +
                  (f" of the command's {asked[1]}" if fewer else "") + (f"; {part.note}." if part.note else "."), ""]
        # The commands of one run stand once.
        before = [told[command] for command in part.commands if command in told]
        if before:
            lines += [f"From the run of [{before[0]}](#{before[0]}).", ""]
        new = [command for command in part.commands if command not in told]
        if new:
            lines += ["```sh", *new, "```", ""]
        told.update(dict.fromkeys(new, part.id))
        heading, rows = by_group(result["rows"])
        lines += [f"| {heading} | paper | here |" if heading else "| | paper | here |", "| --- | --- | --- |"]
        lines += [f"| {' | '.join(cell(text) for text in row)} |" for row in rows]
        lines += ["", f"`{result['file']}`, sha256 {result['sha256'][:16]}"]
    return "\n".join([*lines, ""])


def main():
    options = argparse.ArgumentParser(prog="scripts/reproduce", description=__doc__,
                                      formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("action", choices=("list", "run", "record", "page"))
    options.add_argument("parts", nargs="*", metavar="PART")
    options.add_argument("--data", default=os.environ.get("GAINLENS_SHARED_DATA", "../shared/data"),
                         help="folder of the data sets")
    options.add_argument("--runs", default="reproduction-runs", help="folder of the runs")
    options.add_argument("--program", default="build/gainlens", help="gainlens to run")
    options.add_argument("--results", default=RESULTS, help="figures of the runs that were read")
    options.add_argument("--page", default=PAGE, help="page to write")
    options.add_argument("--check", action="store_true", help="page: change nothing; exit status 1 if it differs")
    given = options.parse_args()
    if given.check and given.action != "page":
        raise Refused("--check: goes with page alone")
    if bool(given.parts) != (given.action in ("run", "record")):
        wrong = "takes no parts" if given.parts else "which parts? see: scripts/reproduce list"
        raise Refused(f"{given.action}: {wrong}")
    folders = {name: (ROOT / getattr(given, name)).resolve() for name in ("data", "runs", "results", "page")}
    folders["program"] = str((ROOT / given.program).resolve())

    if given.action == "list":
        for part in PARTS:
            state = "there" if is_there(part, folders) else "-"
            print(f"{part.id:28} {part.place:24} {part.hours:24} {state}")
        return
    if given.action == "page":
        check_page(folders["page"])
        text = page(known_results(folders["results"]))
        if given.check and (not folders["page"].exists() or folders["page"].read_text() != text):
            raise SystemExit(f"gainlens: error: {given.page} is not what scripts/reproduce page writes")
        if not given.check:
            write(folders["page"], text)
        return
    if given.parts == ["all"] and given.action == "record":
        parts = [part for part in PARTS if is_there(part, folders)]
        if not parts:
            raise Refused(f"{folders['runs']}: holds no run of a part; see: scripts/reproduce list")
    else:
        parts = chosen(given.parts)
    if given.action == "run":
        for part in parts:
            for command in part.commands[:-1]:
                call(words_of(command, folders))
    for part in parts:
        if not is_there(part, folders):
            raise Refused(f"{part.id}: {source_of(part, folders)}: no such file; see: scripts/reproduce run {part.id}")
    record(parts, folders)


if __name__ == "__main__":
    try:
        main()
    except (Refused, readers.OtherRun) as refused:
        print(f"gainlens: error: {refused}", file=sys.stderr)
        sys.exit(2)
