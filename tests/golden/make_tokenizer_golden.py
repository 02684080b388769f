"""Makes token ids by the field's standard tokenizers, for tests/tokenizers.

    python make_tokenizer_golden.py SHARED_DATA tokenizers.json

Needs tokenizers and sentencepiece. SHARED_DATA holds models/, tokenizers/ and wikitext-raw/. For texts from there, only
hashes of the ids are stored. The tiny tokenizers are built here from the sentences below, and stored completely.
"""

import gzip
import hashlib
import json
import pathlib
import sys
import tempfile

import sentencepiece
import tokenizers
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

SENTENCES = [
    "",
    " ",
    "   ",
    "Hello world",
    " Hello  world! ",
    "I've told you: he'll, they'RE, we'D; it's 3.14159 or 1,000,000 (not 12345678)...",
    "a\tb\n\nc\r\n d \r\r e\u00a0f\u3000g\u2028h\u0085i\u180ej",
    "don\u2019t \u2014 \u201cquotes\u201d \u2026 \u20ac5 \u00bd \u00b2 \u2460 \u2167",
    "Caf\u00e9 cafe\u0301 \u1e9b\u0323 \ufb01ne \uff21\uff22\uff23 \u00c4pfel \u0130stanbul \u03a3\u03af\u03c3\u03c5\u03c6\u03bf\u03c2 STRASSE Stra\u00dfe",
    "\u6211\u4eec\u5728\u8fd9\u91cc\u3002\u3053\u3093\u306b\u3061\u306f\u30ab\u30bf\u30ab\u30ca \ud55c\uad6d\uc5b4 \u1100\u1161\u11a8",
    "\U0001f600\U0001f469\u200d\U0001f52c \U0001f1e9\U0001f1ea \u2764\ufe0f ok",
    "\u0000\u0001\u007f\u200b\ufeffcontrol\u00ad",
    "\u0645\u0631\u062d\u0628\u0627 \u05e9\u05dc\u05d5\u05dd \u0928\u092e\u0938\u094d\u0924\u0947 \u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35",
    "<s>Hello</s> <mask>  world<|end|>x<|end|> wordsword sword <s",
    "word <word> <wordy> _word word_ (word)\u00e9word word\u00e9 word",
    "  <mask>\n<mask>  <s>  \n </s> <mask><mask> ",
    "\u2581under\u2581score \u2581 _ __ snake_case camelCase HTTPServer2Go",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa bbbbbbbbbbbbbbbbbbb",
    "the theory of the thing then there they think that the other brother gathers",
    "x = f(a, b) + [1, 2]; // !!?? ## $$ ~~ `code` a&b|c^d%e",
]
CORPUS = [s for s in SENTENCES if s.isascii()] * 3 + [
    "the world and the word of the others in the northern weather"
] * 3

END = [
    {
        "id": None,
        "content": "<|end|>",
        "single_word": False,
        "lstrip": False,
        "rstrip": False,
        "normalized": False,
        "special": True,
    }
]


def added(content, **properties):
    token = {
        "id": None,
        "content": content,
        "single_word": False,
        "lstrip": False,
        "rstrip": False,
        "normalized": False,
        "special": True,
    }
    return {**token, **properties}


def split(regex=None, string=None, behavior="Isolated", invert=False):
    pattern = {"Regex": regex} if regex is not None else {"String": string}
    return {"type": "Split", "pattern": pattern, "behavior": behavior, "invert": invert}


def byte_level(prefix=False, regex=False):
    return {"type": "ByteLevel", "add_prefix_space": prefix, "trim_offsets": True, "use_regex": regex}


def metaspace(scheme, cut):
    return {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": scheme, "split": cut}


def sequence(*steps):
    return {"type": "Sequence", "pretokenizers": list(steps)}


def normalizers(*steps):
    return {"type": "Sequence", "normalizers": list(steps)}


def trained(vocabulary_size, pre_tokenizer, alphabet, **model):
    """The BPE part of a tokenizer trained on CORPUS."""
    tokenizer = Tokenizer(models.BPE(unk_token=model.get("unk_token")))
    if pre_tokenizer is not None:
        tokenizer.pre_tokenizer = pre_tokenizer
    specials = [model["unk_token"]] if model.get("unk_token") else []
    if model.get("byte_fallback"):
        specials += [f"<0x{byte:02X}>" for byte in range(256)]
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary_size, initial_alphabet=alphabet, special_tokens=specials, show_progress=False
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    part = json.loads(tokenizer.to_str())["model"]
    return {**part, **model}


def base_models():
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    bytes_model = trained(340, pre_tokenizers.ByteLevel(add_prefix_space=False), sorted(alphabet))
    plain = trained(150, pre_tokenizers.Metaspace(), ["\u2581", "\u00e9", "\n"], unk_token="<unk>")
    fallback = trained(390, None, ["\u2581", "\u00e9"], unk_token="<unk>", byte_fallback=True, fuse_unk=True)
    partial = json.loads(json.dumps(fallback))  # bytes missing: some characters fall back, others are unknown
    for byte in (0xE2, 0xF0, 0x09):
        renamed = partial["vocab"].pop(f"<0x{byte:02X}>")
        partial["vocab"][f"unused{byte}"] = renamed
    return {"bytes": bytes_model, "plain": plain, "fallback": fallback, "partial": partial}


CL100K = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
QWEN = CL100K.replace(r"\p{N}{1,3}", r"\p{N}")
O200K = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
    r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
SPACES = [
    {"type": "Prepend", "prepend": "\u2581"},
    {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"},
]
ADDED = [
    added("<s>"),
    added("</s>", rstrip=True),
    added("<mask>", lstrip=True, rstrip=True),
    added("word", single_word=True, special=False),
    added("<wordy>", normalized=True, special=False),
    added("<word>", normalized=True),
    added("<|end|>"),
    added("<|end|>x", special=False),
]


def tokenizer_parts():
    """Dictionary from name to (model, normalizer, pre-tokenizer, added tokens, changes of the model)."""
    split_ = {
        f"split {behavior}{' inverted' if invert else ''}": (
            "plain",
            None,
            split(r"[\s\p{P}]", behavior=behavior, invert=invert),
            [],
            {},
        )
        for behavior in ("Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous")
        for invert in (False, True)
    }
    forms = {
        form: ("fallback", {"type": form}, None, [], {})
        for form in ("NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents", "ByteLevel")
    }
    spaces = {
        f"metaspace {scheme}{' split' if cut else ''}": ("plain", None, metaspace(scheme, cut), ADDED, {})
        for scheme in ("always", "first", "never")
        for cut in (False, True)
    }
    return {
        "gpt2": ("bytes", None, byte_level(regex=True), END, {}),
        "gpt2 prefix": ("bytes", {"type": "NFC"}, byte_level(prefix=True, regex=True), ADDED, {}),
        "llama3": ("bytes", None, sequence(split(CL100K), byte_level()), ADDED, {"ignore_merges": True}),
        "qwen": ("bytes", {"type": "NFC"}, sequence(split(QWEN), byte_level()), END, {}),
        "o200k": ("bytes", None, sequence(split(O200K, behavior="Removed", invert=True), byte_level()), END, {}),
        "deepseek": (
            "bytes",
            None,
            sequence(
                split("[\r\n]"),
                split(r"\s?\p{L}+"),
                split(r"\s?\p{P}+"),
                split("[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"),
                {"type": "Digits", "individual_digits": True},
                byte_level(),
            ),
            END,
            {},
        ),
        "digits": ("plain", None, {"type": "Digits", "individual_digits": False}, [], {}),
        "punctuation": ("plain", None, {"type": "Punctuation", "behavior": "MergedWithPrevious"}, [], {}),
        "whitespace": ("plain", None, {"type": "Whitespace"}, [], {}),
        "whitespace split": ("plain", None, {"type": "WhitespaceSplit"}, [], {}),
        "split string": ("plain", None, split(string="the", behavior="MergedWithNext"), [], {}),
        "lines": ("plain", None, split(r"^.|.$|\w+\z", behavior="Isolated"), [], {}),
        "empty matches": ("plain", None, split(r"e*", behavior="Contiguous"), [], {}),
        "llama": ("fallback", normalizers(*SPACES), None, [{**token, "normalized": True} for token in ADDED], {}),
        "llama plain": ("fallback", normalizers(*SPACES), None, ADDED, {}),
        "gemma": (
            "fallback",
            {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"},
            split(string=" ", behavior="MergedWithPrevious"),
            ADDED,
            {},
        ),
        "some bytes": ("partial", normalizers(*SPACES), None, [], {}),
        "some bytes, unknown apart": ("partial", normalizers(*SPACES), None, [], {"fuse_unk": False}),
        "no fallback": ("partial", None, None, [], {"byte_fallback": False}),
        "strip": (
            "fallback",
            normalizers(
                {"type": "Strip", "strip_left": True, "strip_right": True},
                {"type": "Replace", "pattern": {"Regex": r"\s{2,}"}, "content": " "},
            ),
            None,
            ADDED,
            {},
        ),
        "strip left": (
            "fallback",
            {"type": "Strip", "strip_left": True, "strip_right": False},
            metaspace("first", False),
            [],
            {},
        ),
        **split_,
        **forms,
        **spaces,
    }


def assembled(all_models, model, normalizer, pre_tokenizer, tokens, changes):
    part = {**all_models[model], **changes}
    next_id = max(part["vocab"].values()) + 1
    entries = []
    for token in tokens:
        token_id = part["vocab"].get(token["content"])
        if token_id is None:
            token_id, next_id = next_id, next_id + 1
        entries.append({**token, "id": token_id})
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": entries,
        "normalizer": normalizer,
        "pre_tokenizer": pre_tokenizer,
        "post_processor": None,
        "decoder": None,
        "model": part,
    }


def small_cases(all_models):
    cases = []
    for name, (model, normalizer, pre_tokenizer, tokens, changes) in tokenizer_parts().items():
        document = assembled(all_models, model, normalizer, pre_tokenizer, tokens, changes)
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump(document, file)
            file.flush()
            tokenizer = Tokenizer.from_file(file.name)
        ids = [tokenizer.encode(sentence, add_special_tokens=False).ids for sentence in SENTENCES]
        frame = {key: value for key, value in document.items() if key != "model"}
        cases.append({"name": name, "model": model, "model_changes": changes, "tokenizer": frame, "ids": ids})
    return cases


def digest(streams):
    ids = [i for stream in streams for i in stream]
    packed = b"".join(i.to_bytes(4, "little") for i in ids)
    return {"count": len(ids), "sha256": hashlib.sha256(packed).hexdigest(), "first": ids[:12]}


def shared_cases(shared):
    text = gzip.open(shared / "wikitext-raw/wiki.valid.raw.gz").read().decode()
    lines = [line for line in text.split("\n") if line][:2000]
    tinystories = Tokenizer.from_file(str(shared / "models/tinystories-656K/tokenizer.json"))
    llama = sentencepiece.SentencePieceProcessor(model_file=str(shared / "tokenizers/llama2/tokenizer.model"))
    with tempfile.TemporaryDirectory() as folder:
        for source, name in (("encoder.json.gz", "vocab.json"), ("vocab.bpe.gz", "merges.txt")):
            (pathlib.Path(folder) / name).write_bytes(gzip.open(shared / "tokenizers/gpt2" / source).read())
        gpt2 = Tokenizer(models.BPE.from_file(f"{folder}/vocab.json", f"{folder}/merges.txt"))
    gpt2.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    gpt2.add_special_tokens(["<|endoftext|>"])
    encoders = {
        "tinystories": lambda part: tinystories.encode(part, add_special_tokens=False).ids,
        "gpt2": lambda part: gpt2.encode(part, add_special_tokens=False).ids,
        "llama2": llama.encode,
    }
    return {
        name: {
            "sentences": [encode(s) for s in SENTENCES],
            "lines": digest(map(encode, lines)),
            "whole": digest([encode(text)]),
        }
        for name, encode in encoders.items()
    }


def main():
    shared, out = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    all_models = base_models()
    golden = {
        "made_by": f"python make_tokenizer_golden.py SHARED_DATA {out.name}",
        "versions": {"tokenizers": tokenizers.__version__, "sentencepiece": sentencepiece.__version__},
        "sentences": SENTENCES,
        "models": all_models,
        "cases": small_cases(all_models),
        "shared": shared_cases(shared),
    }
    out.write_text(
        json.dumps(golden, ensure_ascii=True, separators=(",", ":"))
        .replace('{"name":', '\n{"name":')
        .replace('"shared":', '\n"shared":')
        + "\n"
    )


if __name__ == "__main__":
    main()
