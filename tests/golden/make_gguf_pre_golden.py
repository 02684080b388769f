"""Makes token ids for every name under tokenizer.ggml.pre and for some pre-tokenizers of tokenizer.json:
tests/tokenizers/gguf_byte_level_bpe_test.cpp and pre_tokenizer_golden_test.cpp.

    python make_gguf_pre_golden.py ../tokenizers/golden/gguf_pre.json

Needs tokenizers, transformers and sentencepiece. Each name gets the normaliser and pre-tokenizer of the models that it
was made for: from the class in transformers if there is one, else as in their tokenizer.json (o200k:
tiktoken_ext/openai_public.py; tekken: tekken_240911.json of mistral-common; llama4 and pixtral: transformers'
TikTokenConverter, with which both were published, Pixtral with the pattern that is its default). The byte-level BPE
after them is trained on texts that are not cut into words. Its merges therefore reach across the ends of words, and
every cut shows in the ids.
"""

import hashlib
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
    "\u2029 \ua3e4 \u1f7d\u1fd3\u1fdb\u2126\u212a a\u0294b\u01bbc "
    "\U00010400\U0001e943 \u03a3\u0391\u03a3 \u1c80\u1c90 \u0561\u10d0",
    "\u6f22\u5b57\u304b\u306a\u30ab\u30ca\ud55c\uad6d "
    "\u300c\u300d\uff01\uff5e\u2018x\u201f\u3000\u3001\u3002 `foo~bar (x)y .z @w #\u20acq \u00a7a",
    "  !word ?Word \t$x\n.NET e\u0301\u0302 \u0915\u094d\u0937 \u2160\u2161 1\u00bd2 \u0663\u0664 \n\n  \n",
]
ADDED = [("<|end|>", True), ("caf\u00e9", False), ("   ", False)]  # content, special: else user-defined
DIGITS = {"type": "Digits", "individual_digits": True}
TEKKEN = O200K.replace(r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?", "").replace(r"\p{N}{1,3}", r"\p{N}")
NFC = {"type": "NFC"}
# First and last characters of ranges: the letters with two cases, as in the tokenizer.json of DeepSeek LLM 7B and V2.
DEEPSEEK_LETTERS = "A-Za-z" + (
    "\u00b5\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u01ba\u01bc-\u01bf\u01c4-\u0293\u0295-\u02af\u0370-\u0373\u0376\u0377"
    "\u037b-\u037d\u037f\u0386\u0388-\u038a\u038c\u038e-\u03a1\u03a3-\u03f5\u03f7-\u0481\u048a-\u052f\u0531-\u0556"
    "\u10a0-\u10c5\u13a0-\u13f5\u13f8-\u13fd\u1c90-\u1cba\u1cbd-\u1cbf\u1d00-\u1d2b\u1d6b-\u1d77\u1d79-\u1d9a"
    "\u1e00-\u1f15\u1f18-\u1f1d\u1f20-\u1f45\u1f48-\u1f4d\u1f50-\u1f57\u1f59\u1f5b\u1f5d\u1f5f-\u1f7d\u1f80-\u1fb4"
    "\u1fb6-\u1fbc\u1fbe\u1fc2-\u1fc4\u1fc6-\u1fcc\u1fd0-\u1fd3\u1fd6-\u1fdb\u1fe0-\u1fec\u1ff2-\u1ff4\u1ff6-\u1ffc"
    "\u2102\u2107\u210a-\u2113\u2115\u2119-\u211d\u2124\u2126\u2128\u212a-\u212d\u212f-\u2134\u2139\u213c-\u213f"
    "\u2145-\u2149\u214e\u2183\u2184\u2c00-\u2c7b\u2c7e-\u2ce4\u2ceb-\u2cee\u2cf2\u2cf3\ua640-\ua66d\ua680-\ua69b"
    "\ua722-\ua76f\ua771-\ua787\ua78b-\ua78e\uab70-\uabbf\ufb00-\ufb06\ufb13-\ufb17\uff21-\uff3a\uff41-\uff5a"
    "\U00010400-\U0001044f\U000104b0-\U000104d3\U000104d8-\U000104fb\U00010c80-\U00010cb2\U00010cc0-\U00010cf2"
    "\U000118a0-\U000118df\U0001e900-\U0001e943"
)
DEEPSEEK_V3 = (
    r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+|"""
    r""" ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"""
)


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
    deepseek_llm = sequence(
        split("[\r\n]"),
        split(f"\\s?[{DEEPSEEK_LETTERS}]+"),
        split("\\s?[!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002]+"),
        split(r"\s+$"),
        split("[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"),
        DIGITS,
        byte_level(),
    )
    deepseek_v3 = sequence(
        split(r"\p{N}{1,3}"), split("[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"), split(DEEPSEEK_V3), byte_level()
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
        "deepseek-llm": (None, deepseek_llm, False),
        "deepseek-v3": (None, deepseek_v3, False),
        "deepseek-r1-qwen": (*own(transformers.Qwen2Tokenizer), False),
        "llama4": (None, by_pattern(O200K), True),
        "pixtral": (None, by_pattern(CL100K), True),
        "smaug-bpe": (None, by_pattern(CL100K), False),
    }


def others():
    """The same for pre-tokenizers that occur only in tokenizer.json."""
    not_han = r"&&[^\p{Han}]]"
    upper, lower = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}" + not_han, r"[\p{Ll}\p{Lm}\p{Lo}\p{M}" + not_han
    kimi = O200K.replace(r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", upper).replace(r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]", lower)
    return {
        "kimi-k2": (None, by_pattern(r"[\p{Han}]+|" + kimi.replace("[\\r\\n/]*", "[\\r\\n]*")), False),
        "sets": (None, by_pattern(r"[a-m[^\x{1}-\x{2fff}]&&[^aeiou\u4e2d]]+|[^[\s\d]a-z&&[^A-F]]+|[-[.+]^-]"), False),
        "scripts": (None, sequence({"type": "UnicodeScripts"}, byte_level()), False),
        "words, scripts": (None, sequence(split(r"\s?\w+"), {"type": "UnicodeScripts"}, byte_level()), False),
    }


def cases(kinds, model, texts):
    result = []
    for name, (normalizer, pre_tokenizer, ignore_merges) in kinds.items():
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
        ids = [tokenizer.encode(text, add_special_tokens=False).ids for text in texts]
        frame = {key: value for key, value in json.loads(tokenizer.to_str()).items() if key != "model"}
        result.append({"name": name, "ignore_merges": ignore_merges, "tokenizer": frame, "ids": ids})
    return result


def script_pieces():
    """Where UnicodeScripts cuts a text of every character, as a count and a hash of the bytes of each piece."""
    text = "".join(chr(i) for i in range(0x110000) if not 0xD800 <= i < 0xE000)
    pieces = [piece for piece, _ in pre_tokenizers.UnicodeScripts().pre_tokenize_str(text)]
    lengths = ",".join(str(len(piece.encode())) for piece in pieces)
    return {"count": len(pieces), "sha256": hashlib.sha256(lengths.encode()).hexdigest()}


def main():
    out = pathlib.Path(sys.argv[1])
    texts = SENTENCES + MORE
    model = uncut(texts)
    golden = {
        "made_by": f"python make_gguf_pre_golden.py ../tokenizers/golden/{out.name}",
        "versions": {"tokenizers": tokenizers.__version__, "transformers": transformers.__version__},
        "tokens": [token for token, _ in sorted(model["vocab"].items(), key=lambda item: item[1])],
        "merges": [" ".join(merge) for merge in model["merges"]],
        "added": [{"content": content, "special": special} for content, special in ADDED],
        "texts": texts,
        "cases": cases(kinds(), model, texts),
        "others": cases(others(), model, texts),
        "script_pieces": script_pieces(),
    }
    out.write_text(json.dumps(golden, separators=(",", ":")).replace('{"name":', '\n{"name":') + "\n")


if __name__ == "__main__":
    main()
