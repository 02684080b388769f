"""scripts/reproduce: reads a run, writes the page, refuses what it does not know. Usage: reproduction.py PROGRAM"""

import gzip
import json
import pathlib
import subprocess
import sys
import tempfile

PROGRAM = sys.argv[1]
SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts/reproduce"


def reproduce(*words):
    return subprocess.run([SCRIPT, *map(str, words)], capture_output=True, text=True, check=False)


def refused(*words):
    answer = reproduce(*words)
    assert answer.returncode == 2, answer
    *called, line = answer.stderr.splitlines()
    assert all(other.startswith("+ ") for other in called), answer.stderr
    return line


def main():
    # The page in the repository is the one that its results make.
    answer = reproduce("page", "--check")
    assert answer.returncode == 0, answer.stderr

    assert refused("run", "table-1") == "gainlens: error: table-1: no part has this name; see: scripts/reproduce list"
    assert "which parts" in refused("record")
    assert "takes no parts" in refused("list", "sasrec-sports")
    assert "page alone" in refused("list", "--check")

    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        files = ("--program", PROGRAM, "--runs", folder / "runs", "--data", folder, "--results", folder / "r.json",
                 "--page", folder / "page.md")
        assert "no such file" in refused("record", "sasrec-instruments", *files)

        data = folder / "amazon/Musical_Instruments_5.json.gz"
        data.parent.mkdir()
        with gzip.open(data, "wt") as out:
            for user in range(1429):
                for step in range(6):
                    out.write(json.dumps({"reviewerID": f"u{user}", "asin": f"i{(7 * user + step * step) % 900}",
                                          "unixReviewTime": step}) + "\n")
        subprocess.run([PROGRAM, "train", "recommend", "--quiet", "--data", data, "--arm", "plain,bft", "--seeds", "2",
                        "--epochs", "2", "--threads", "1", "--out", folder / "runs/sasrec-instruments"], check=True,
                       stdout=subprocess.DEVNULL)
        answer = reproduce("record", "n-eff-instruments", *files)
        assert answer.returncode == 0, answer.stderr
        page = (folder / "page.md").read_text()
        assert "| n_eff, n_eff / keys | paper | here |" in page and "| layer 1, head 1 | – |" in page, page
        assert "Gains, density" not in (folder / "page.md").read_text()  # they need the other parts too
        assert "no such program" in refused("record", "data-instruments", *files, "--program", folder / "none")
        answer = reproduce("record", "all", *files)
        assert answer.returncode == 0, answer.stderr
        results = json.loads((folder / "r.json").read_text())
        assert set(results) == {"sasrec-instruments", "data-instruments", "n-eff-instruments"}, results
        compared = subprocess.run(
            [PROGRAM, "compare", f"{folder}/runs/sasrec-instruments:plain", f"{folder}/runs/sasrec-instruments:bft",
             "--json"], capture_output=True, text=True, check=True)
        mean = json.loads(compared.stdout)["comparisons"][0]["metrics"]["mrr"]["seeds"]["candidate"]["mean"]
        what, _, here = results["sasrec-instruments"]["rows"][2]
        assert what == "MRR" and f"→ {mean:.4f}:".replace("0.", ".", 1) in here, here
        assert results["sasrec-instruments"]["size"] == "2 seeds"
        assert ["interactions", "~10.3K", "8,574"] in results["data-instruments"]["rows"]
        page = (folder / "page.md").read_text()
        assert "| Instruments | 0.67% | 6.0 |" in page, page  # of gains, density and n_eff
        assert "| MRR | – |" in page and "## data-instruments" in page, page
        assert reproduce("page", "--check", *files).returncode == 0
        (folder / "page.md").write_text(page + "by hand\n")
        assert reproduce("page", "--check", *files).returncode == 1

        # A fine-tuning, and one that lacks levels of the paper's table.
        task = folder / "colors.jsonl"
        task.write_text("".join(json.dumps({"prompt": f"{number} is red. It is", "answers": ["red"]}) + "\n"
                                for number in range(8)))
        for part in ("nq-distractors-5", "squad-noise"):
            subprocess.run([PROGRAM, "train", "finetune", "--quiet", "data/demo/gated", "--task", task, "--train-rows",
                            "4", "--validation-rows", "2", "--test-rows", "2", "--arm", "sft,bft", "--seeds", "2",
                            "--epochs", "1", "--max-new", "1", "--out", folder / "runs" / part], check=True,
                           stdout=subprocess.DEVNULL, cwd=SCRIPT.parents[1])
        answer = reproduce("record", "nq-distractors-5", *files)
        assert answer.returncode == 0, answer.stderr
        ((what, paper, here),) = json.loads((folder / "r.json").read_text())["nq-distractors-5"]["rows"]
        assert (what, paper) == ("F1, `bft`, 0% wrong words", ".2321 → .2561: +10.3%, p .073"), what
        assert " → " in here, here
        answer = reproduce("record", "squad-noise", *files)
        assert answer.returncode == 2, answer.stderr
        assert "has 1 of the 12 rows that the paper prints" in answer.stderr.splitlines()[-1], answer.stderr

        # Another run in the place of the part's is refused, and what was recorded stays.
        known = (folder / "r.json").read_text()
        (folder / "runs/bert4rec-instruments").symlink_to(folder / "runs/sasrec-instruments")
        assert "the backbone sasrec, and the part is of bert4rec" in refused("record", "bert4rec-instruments", *files)
        (folder / "page.md").write_text("my notes\n")
        assert "is no page of this script" in refused("record", "all", *files)
        assert (folder / "page.md").read_text() == "my notes\n" and (folder / "r.json").read_text() == known
        (folder / "page.md").unlink()
        for broken in ("{bad", "[]", '{"sasrec-instruments": {}}', '{"table-1": {}}'):
            (folder / "r.json").write_text(broken)
            assert "r.json" in refused("page", *files)
        assert "no such folder" in refused("page", *files[:-1], folder / "none" / "page")
        nothing = ("--runs", folder / "empty", "--data", folder / "empty")
        assert "holds no run" in refused("record", "all", *files, *nothing)


main()
