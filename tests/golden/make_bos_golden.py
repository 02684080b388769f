"""Asks transformers whether it puts a BOS before a text, for tests/tokenizers/bos_golden_test.cpp.

    python make_bos_golden.py ../tokenizers/golden/bos.json

Needs tokenizers and transformers. Each case is a folder with a small tokenizer.json, whose post-processor puts a BOS
first or does not, and a tokenizer_config.json with one of several classes, with and without `add_bos_token`.
"""

import json
import pathlib
import sys
import tempfile

import tokenizers
import transformers
from tokenizers import Tokenizer, models, processors

MODEL_TYPES = {
    "LlamaTokenizerFast": "llama",
    "LlamaTokenizer": "llama",
    "Qwen2Tokenizer": "qwen2",
    "GemmaTokenizer": "gemma",
    "PreTrainedTokenizerFast": "llama",
    "GPT2Tokenizer": "gpt2",
}
POST_PROCESSORS = {
    "template with BOS": lambda: processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A $B", special_tokens=[("<s>", 1)]
    ),
    "template without BOS": lambda: processors.TemplateProcessing(single="$A", pair="$A $B", special_tokens=[]),
    "byte level": lambda: processors.ByteLevel(),
    "none": lambda: None,
}


def tokenizer(post_processor):
    result = Tokenizer(models.BPE({"<unk>": 0, "<s>": 1, "a": 2, "b": 3, "ab": 4}, [("a", "b")], unk_token="<unk>"))
    result.add_special_tokens(["<unk>", "<s>"])
    if post_processor is not None:
        result.post_processor = post_processor
    return result


def main():
    transformers.logging.set_verbosity_error()
    cases = []
    for kind, make in POST_PROCESSORS.items():
        document = tokenizer(make())
        for cls, model_type in MODEL_TYPES.items():
            for flag in (None, True, False):
                config = {"tokenizer_class": cls, "bos_token": "<s>", "unk_token": "<unk>"}
                if flag is not None:
                    config["add_bos_token"] = flag
                with tempfile.TemporaryDirectory() as folder:
                    folder = pathlib.Path(folder)
                    document.save(str(folder / "tokenizer.json"))
                    (folder / "tokenizer_config.json").write_text(json.dumps(config))
                    (folder / "config.json").write_text(json.dumps({"model_type": model_type}))
                    ids = transformers.AutoTokenizer.from_pretrained(folder)("ab")["input_ids"]
                cases.append({"post_processor": kind, "config": config, "bos_first": ids[0] == 1})
    golden = {
        "made_by": "python make_bos_golden.py ../tokenizers/golden/bos.json",
        "versions": {"tokenizers": tokenizers.__version__, "transformers": transformers.__version__},
        "tokenizers": {kind: json.loads(tokenizer(make()).to_str()) for kind, make in POST_PROCESSORS.items()},
        "cases": cases,
    }
    text = json.dumps(golden, separators=(",", ":")).replace('{"post_processor":"', '\n{"post_processor":"')
    pathlib.Path(sys.argv[1]).write_text(text + "\n")


if __name__ == "__main__":
    main()
