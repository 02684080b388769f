"""Makes token ids for tests/tokenizers/gguf_byte_level_bpe_test.cpp, for every name under tokenizer.ggml.pre.

    python make_gguf_pre_golden.py ../tokenizers/golden/gguf_pre.json

Needs tokenizers, transformers and sentencepiece. Each name gets the normaliser and pre-tokenizer of the models that it
was made for: from the class in transformers if there is one, else as in their tokenizer.json (o200k:
tiktoken_ext/openai_public.py; tekken: tekken_240911.json of mistral-common). The byte-level BPE after them is trained
on texts that are not cut into words. Its merges therefore reach across the ends of words, and every cut shows in the
ids.
"""

import json
import pathlib
import sys

import tokenizers
import transformers
from make_tokenizer_golden import CL100K, O200K, SENTENCES, byte_level, sequence, split
from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers, trainers

MORE = [
    "1 12 123 1234 12345 1234567.89 \u0661\u0662\u0663\u0664\u0665 3.14 x1y22z333",
    "aBc ABC Abc'S abc's I'LL HTMLParser\u00c9t\u00e9 \u01c5z path/to/file //\n/ \n\n\n x",
    "$5+3<=7 ^~|` \u00a3 \u00ab\u00bb !!! --- \u4e2d\u6587\uff0c\u3002 \u0939\u093f\u0928\u094d\u0926\u0940\u0964 \u0627\u0631\u062f\u0648\u06d4 (a)(b) (\u2026)",
    "word  word   word    word\tword\n\tword \n word",
    "trailing spaces   ",
]
ADDED = [("<|end|>", True), ("caf\u00e9", False), ("   ", False)]  # content, special: else user-defined
DIGITS = {"type": "Digits", "individual_digits": True}
TEKKEN = O200K.replace(r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?", "").replace(r"\p{N}{1,3}", r"\p{N}")
NFC = {"type": "NFC"}


def by_pattern(pattern):
    return sequence(split(pattern), byte_level())


def own(cls):
    """Normaliser and pre-tokenizer of a class of transformers."""
    backend = json.loads(cls(vocab={"<unk>": 0}, merges=[]).backend_tokenizer.to_str())
    return backend["normalizer"], backend["pre_tokenizer"]


def uncut(texts):
    """The model of a tokenizer trained on whole texts."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(vocab_size=1000, initial_alphabet=alphabet, max_token_length=6, show_progress=False)
    tokenizer.train_from_iterator(texts, trainer)
    return json.loads(tokenizer.to_str())["model"]


def kinds():
    """Dictionary from name to (normaliser, pre-tokenizer, whether to ignore merges)."""
    falcon = sequence(
        {"type": "Punctuation", "behavior": "Contiguous"},
        byte_level(regex=True),
        {"type": "Digits", "individual_digits": False},
        split("[0-9][0-9][0-9]"),
    )
    deepseek = sequence(
        split("[\r\n]"),
        split(r"\s?\p{L}+"),
        split(r"\s?\p{P}+"),
        split("[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"),
        DIGITS,
        byte_level(),
    )
    return {
        "gpt-2": (*own(transformers.GPT2Tokenizer), False),
        "phi-2": (None, byte_level(regex=True), False),
        "mpt": (*own(transformers.GPTNeoXTokenizer), False),
        "olmo": (*own(transformers.GPTNeoXTokenizer), False),
        "smollm": (None, sequence(DIGITS, byte_level(regex=True)), False),
        "starcoder": (None, sequence(DIGITS, byte_level(regex=True)), False),
        "command-r": (*own(transformers.CohereTokenizer), False),
        "llama-bpe": (None, by_pattern(CL100K), True),
        "llama3": (None, by_pattern(CL100K), True),
        "llama-v3": (None, by_pattern(CL100K), True),
        "dbrx": (None, by_pattern(CL100K), False),
        "qwen2": (*own(transformers.Qwen2Tokenizer), False),
        "stablelm2": (*own(transformers.Qwen2Tokenizer), False),
        "gpt-4o": (None, by_pattern(O200K), False),
        "tekken": (None, by_pattern(TEKKEN), True),
        "falcon": (None, falcon, False),
        "bloom": (None, by_pattern(" ?[^(\\s|[.,!?\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c])]+"), False),
        "deepseek-coder": (None, deepseek, False),
    }


def main():
    out = pathlib.Path(sys.argv[1])
    texts = SENTENCES + MORE
    model = uncut(texts)
    cases = []
    for name, (normalizer, pre_tokenizer, ignore_merges) in kinds().items():
        document = {
            "version": "1.0",
            "truncation": None,
            "padding": None,
            "added_tokens": [],
            "normalizer": normalizer,
            "pre_tokenizer": pre_tokenizer,
            "post_processor": None,
            "decoder": None,
            "model": {**model, "ignore_merges": ignore_merges},
        }
        tokenizer = Tokenizer.from_str(json.dumps(document))
        for content, special in ADDED:
            add = tokenizer.add_special_tokens if special else tokenizer.add_tokens
            assert add([AddedToken(content, normalized=not special, special=special)]) == 1
        cases.append({"name": name, "ids": [tokenizer.encode(text, add_special_tokens=False).ids for text in texts]})
    golden = {
        "made_by": f"python make_gguf_pre_golden.py ../tokenizers/golden/{out.name}",
        "versions": {"tokenizers": tokenizers.__version__, "transformers": transformers.__version__},
        "tokens": [token for token, _ in sorted(model["vocab"].items(), key=lambda item: item[1])],
        "merges": [" ".join(merge) for merge in model["merges"]],
        "added": [{"content": content, "special": special} for content, special in ADDED],
        "texts": texts,
        "cases": cases,
    }
    out.write_text(json.dumps(golden, separators=(",", ":")).replace('{"name":', '\n{"name":') + "\n")


if __name__ == "__main__":
    main()
