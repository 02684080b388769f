"""What the paper prints, and how gainlens makes it: one Part for each table, figure or cell of them."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Part:
    id: str
    place: str  # in the paper
    title: str
    reader: str  # how figures are read from the last command's output
    commands: tuple  # words; {data} and {runs} are folders
    hours: str  # on one core
    note: str = ""
    paper: tuple = ()  # what the paper prints, row by row, where the command does not
    backbone: str = ""  # of the run that is compared; "": not known by the command's output
    data: str = ""  # its data set, as STATISTICS names it


# Files of the data sets that docs/test-data.md names; the others are public and have to be brought.
FILES = {
    "Instruments": "amazon/Musical_Instruments_5.json.gz",
    "Beauty": "amazon/Beauty.txt.gz",
    "Sports": "amazon/Sports_and_Outdoors.txt.gz",
    "Toys": "amazon/Toys_and_Games.txt.gz",
    "Games": "amazon/Video_Games.txt.gz",
    "ML-1M": "ml-1m/ratings.dat",
}
# Users and items of the splits.
SIZES = {"Instruments": (1429, 900), "Beauty": (22363, 12101), "Sports": (35598, 18357), "Toys": (19412, 11924),
         "Games": (24303, 10672), "ML-1M": (6040, 3416)}
# Of 20 seeds of plain and bft: measured on Instruments, Beauty and Sports, for the others in proportion to their
# positions and items.
HOURS = {"Instruments": 0.3, "Beauty": 7.5, "Sports": 28, "Toys": 7, "Games": 10, "ML-1M": 17}
BACKBONES = (("sasrec", "SASRec", "Table 2"), ("bert4rec", "BERT4Rec", "Table 3"), ("hstu", "HSTU", "Table 4"))


def _rare_items(data):
    """ML-1M has the paper's 3,416 items without those that fewer than 5 users rated."""
    return " --min-item-count 5" if data == "ML-1M" else ""


def _train(backbone, data, name, rest):
    return (f"gainlens train recommend --backbone {backbone} --data {{data}}/{FILES[data]}{_rare_items(data)} {rest} "
            f"--out {{runs}}/{name}")


def _main_tables():
    for backbone, title, place in BACKBONES:
        for data in FILES:
            name = f"{backbone}-{data.lower()}"
            yield Part(
                id=name, place=place, title=f"{title} on {data}", reader="compare",
                commands=(_train(backbone, data, name, "--arm plain,bft --seeds 20"),
                          f"gainlens compare {{runs}}/{name}:plain {{runs}}/{name}:bft --json"),
                hours=f"{HOURS[data]:g}", backbone=backbone, data=data,
            )


# Users, items, interactions, mean and longest length of a history, density, as Table 6 prints them.
STATISTICS = {
    "Instruments": ("1,429", "900", "~10.3K", "7.2", "165", "0.80%"),
    "Beauty": ("22,363", "12,101", "~198K", "8.9", "291", "0.07%"),
    "Sports": ("25,598", "18,357", "~296K", "11.6", "293", "0.06%"),
    "Toys": ("19,412", "11,924", "~167K", "8.6", "548", "0.07%"),
    "Games": ("24,303", "10,672", "~233K", "9.6", "879", "0.09%"),
    "ML-1M": ("6,040", "3,416", "~999K", "165.5", "2,277", "4.85%"),
}


def _n_eff(data):
    """Of the heads of plain SASRec, which the paper says to be smallest on the sparsest data and never prints."""
    run, swept = f"{{runs}}/sasrec-{data.lower()}", f"{{runs}}/n-eff-{data.lower()}"
    return Part(
        id=f"n-eff-{data.lower()}", place="Section 5.1, cross-table summary",
        title=f"n_eff of SASRec's heads, {data}", reader="evidence",
        commands=(_train("sasrec", data, f"sasrec-{data.lower()}", "--arm plain,bft --seeds 20"),
                  f"gainlens sweep {run} --arm plain --data {{data}}/{FILES[data]}{_rare_items(data)} --out {swept} "
                  "--json"),
        hours="the run of Table 2", data=data,
    )


# HR@10, NDCG@10 and MRR as Table 9 prints them.
FFN = {
    "Instruments": (".0917 → .1091: +19.05%, p <.001", ".0532 → .0613: +15.21%, p <.001",
                    ".0495 → .0553: +11.80%, p <.001"),
    "Beauty": (".0726 → .0750: +3.28%, p <.001", ".0429 → .0442: +2.98%, p <.001", ".0391 → .0403: +2.99%, p <.001"),
    "Sports": (".0439 → .0472: +7.37%, p <.001", ".0245 → .0263: +7.38%, p <.001", ".0230 → .0246: +6.64%, p <.001"),
    "Toys": (".0677 → .0705: +4.22%, p <.001", ".0416 → .0429: +3.06%, p .002", ".0385 → .0395: +2.57%, p .009"),
    "Games": (".1244 → .1300: +4.52%, p <.001", ".0680 → .0709: +4.16%, p <.001", ".0609 → .0631: +3.51%, p <.001"),
    "ML-1M": (".2560 → .2540: -0.81%, p .121", ".1484 → .1467: -1.20%, p .016", ".1295 → .1279: -1.18%, p .014"),
}
BEAUTY_TUNED = (".0898 → .0920: +2.55%, p .0001", ".0520 → .0530: +1.99%, p .0015", ".0469 → .0477: +1.86%, p .0047")


def _strata(id, place, title, data, kind, edges):
    run = f"{{runs}}/sasrec-{data.lower()}"
    return Part(
        id=id, place=place, title=title, reader=f"strata:{kind}",
        commands=(_train("sasrec", data, f"sasrec-{data.lower()}", "--arm plain,bft --seeds 20"),
                  f"gainlens compare {run}:plain {run}:bft --edges {edges} --json"),
        hours="the run of Table 2", backbone="sasrec", data=data,
    )


GATED = "the paper's checkpoint is QwQZh/gated_attention, 1B_gate_headwise; here: the gated demo model"


def _gated(id, place, title, reader):
    return Part(
        id=id, place=place, title=title, reader=reader,
        commands=("gainlens sweep data/demo/gated --text data/demo/text.txt --lengths 256,512,1k,2k --samples 5 "
                  "--nested --out {runs}/gated-demo",
                  "gainlens report {runs}/gated-demo --out {runs}/gated-demo-report"),
        hours="0.02", note=GATED,
    )


# F1 of an arm and of plain fine-tuning, relative change and p of the paired t over seeds, at 0, 10, .. 40% and over all
# levels, as Table 10 prints them.
SQUAD_FOCAL = (".331 → .309: -6.85%, p .022", ".290 → .290: -0.24%, p .89", ".293 → .299: +2.03%, p .36",
               ".280 → .293: +4.87%, p .044", ".284 → .293: +3.01%, p .16", ".2958 → .2967: +0.32%, p .77")
SQUAD_BFT = (".331 → .359: +8.31%, p .001", ".290 → .288: -0.69%, p .77", ".293 → .300: +2.12%, p .21",
             ".280 → .291: +3.92%, p .05", ".284 → .299: +5.13%, p .021", ".2958 → .3072: +3.87%, p <.001")
# The same of BFT by the number of passages, Table 11.
NQ_BFT = {5: ".2321 → .2561: +10.3%, p .073", 10: ".1511 → .1624: +7.5%, p .142", 15: ".0939 → .0980: +4.3%, p .530",
          20: ".0716 → .0748: +4.5%, p .478"}
# Hours of fine-tuning, of 20 seeds of all arms at 1.1e11 operations a second, the pace of a core in steps of Gemma 3
# 270M. 0.97e9 weights without embedding and head; 6 operations for each weight and token that is learned, 2 for each
# that is read in validation (after both epochs) and test; 220 tokens a row of SQuAD, 40 + 150 for each passage of
# NQ-Open. Left out: the filter's own operations, and the answers, token by token (of SQuAD a third more).
SQUAD_HOURS = "6,000"
NQ_HOURS = {5: "2,100", 10: "4,100", 15: "6,100", 20: "8,100"}
NQ_NOTE = ("the paper trains on 4,000 rows of about 2,000 questions, with the gold passage in several places; here "
           "each question has one")


def _finetune(id, place, title, task, hours, paper, note=""):
    return Part(
        id=id, place=place, title=title, reader="answers",
        commands=(f"gainlens train finetune TinyLlama/TinyLlama-1.1B-Chat-v1.0 {task} --seeds 20 --out {{runs}}/{id}",
                  f"gainlens report {{runs}}/{id} --out {{runs}}/{id}-report"),
        hours=hours, paper=paper, note=note,
    )


PARTS = (
    *_main_tables(),
    *(_strata(f"cold-items-{data.lower()}-{edges}", "Table 5",
              f"Gains by item frequency, {data}, " +
              ("quintiles" if edges == "quintiles" else "the edges that the paper prints"),
              data, "item_frequency", edges)
      for data in ("Sports", "ML-1M") for edges in (("quintiles", "paper") if data == "Sports" else ("quintiles",))),
    *(Part(f"data-{data.lower()}", "Table 6", f"The data set {data}", "statistics",
           (f"gainlens inspect {{data}}/{FILES[data]}{_rare_items(data)} --json",),
           "seconds", paper=STATISTICS[data]) for data in FILES),
    *(_n_eff(data) for data in FILES),
    _finetune("squad-noise", "Figure 1a and Table 10", "SQuAD with corrupted answers",
              "--task squad --data {data}/squad/train-v1.1.json --test {data}/squad/dev-v1.1.json.gz "
              "--arm sft,focal,bft --noise 0 10 20 30 40", SQUAD_HOURS, (*SQUAD_FOCAL, *SQUAD_BFT)),
    *(_finetune(f"nq-distractors-{passages}", "Figure 1b and Table 11", f"NQ-Open with {passages} passages",
                "--task nq --data {data}/nq-open/nq-open-contriever.jsonl.gz "
                f"--passages {passages} --batch 2 --max-length 4096 --train-rows 2155 --validation-rows 200 "
                "--test-rows 300 --arm sft,bft", NQ_HOURS[passages], (paper,), NQ_NOTE)
      for passages, paper in NQ_BFT.items()),
    _gated("gate-frozen", "Figure 2", "n_eff, gate and lambda_obs by context length", "context"),
    _gated("gain-theory", "Figure 3", "K by the formula and K measured", "theory"),
    _gated("sink-vs-k", "Figure 4", "BOS mass and K over heads", "sinks"),
    Part("sensitivity-instruments", "Figures 5 and 6", "Seven knobs on Instruments (the paper: Beauty, 10 seeds)",
         "sensitivity",
         (_train("sasrec", "Instruments", "sensitivity-instruments", "--arm bft --seeds 10 --grid paper"),
          "gainlens sensitivity {runs}/sensitivity-instruments --json"), "2", backbone="sasrec", data="Instruments"),
    Part("beauty-tuned", "Table 7", "SASRec on Beauty, tuned", "compare",
         (_train("sasrec", "Beauty", "beauty-tuned", "--preset beauty-tuned --arm plain,bft --seeds 20"),
          "gainlens compare {runs}/beauty-tuned:plain {runs}/beauty-tuned:bft --paper none --json"), "11",
         paper=BEAUTY_TUNED, backbone="sasrec", data="Beauty"),
    *(_strata(f"cold-users-{data.lower()}", "Table 8", f"Gains by a user's activity, {data}", data, "user_activity",
              "quintiles") for data in ("Sports", "ML-1M")),
    *(Part(f"hstu-ffn-{data.lower()}", "Table 9", f"HSTU with the filter against HSTU with an MLP alone, {data}",
           "compare",
           (_train("hstu", data, f"hstu-{data.lower()}", "--arm ffn,bft --seeds 20"),
            f"gainlens compare {{runs}}/hstu-{data.lower()}:ffn {{runs}}/hstu-{data.lower()}:bft --paper none --json"),
           f"{HOURS[data]:g}", paper=FFN[data], backbone="hstu", data=data) for data in FILES),
    Part("k-by-frequency-sports", "Figure 7", "K and lambda by item frequency, SASRec on Sports", "frequency",
         (_train("sasrec", "Sports", "sasrec-sports", "--arm bft --seeds 20"),
          "gainlens k-by-frequency {runs}/sasrec-sports --data {data}/" + FILES["Sports"] +
          " --placebo step-0 --json"), "14, or the run of Table 2", data="Sports"),
)
