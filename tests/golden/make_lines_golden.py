"""Makes token ids by the field's standard tokenizers, for tests/tokenizers/lines_golden_test.cpp: of 10,000 lines, as
one checksum per line, and of WikiText's validation text in one piece, as a sweep encodes it.

    python make_lines_golden.py SHARED_DATA GEMMA.gguf ../tokenizers/golden

Needs gguf, protobuf, sentencepiece and tokenizers. Writes lines.json and lines-NAME.crc32 (one little-endian uint32 per
line: the CRC-32 of the line's ids as little-endian int32). Gemma's SentencePiece model is built here with protobuf's
own classes, from the pieces, scores and types in the GGUF file.
"""

import array
import gzip
import hashlib
import importlib.metadata
import json
import pathlib
import sys
import tempfile
import zlib

import sentencepiece
from gguf import GGUFReader
from sentencepiece import sentencepiece_model_pb2 as protocol
from tokenizers import Tokenizer, models, pre_tokenizers

COUNT = 10_000
# Stored as plain text, so that a failure can be read: spaces, line ends, code, bytes, and tokens that GGUF marks as
# control or user-defined.
PLAIN = [
    "Hello world!",
    "  two spaces,   three; a\ttab\n\n\nand lines\r\n    indented",
    "<start_of_turn>user\n<bos><unk><eos> <table><td>1</td></table><unused7>[multimodal]",
    "don\u2019t \u2014 caf\u00e9 cafe\u0301 \u6211\u4eec \ud55c\uad6d\uc5b4 \U0001f469\u200d\U0001f52c \u0000\u200b \u2581under\u2581 3.14159",
    "def f(x):\n        return x ** 2  # 1234567890",
    "",
    " ",
    "                                        forty spaces",
]


def wikitext(shared, name):
    return gzip.open(shared / f"wikitext-raw/wiki.{name}.raw.gz").read().decode()


def lines(shared):
    """Lines of WikiText's validation and test text, contexts and questions of SQuAD's development set.

    Lines that are empty or hold only spaces are left out.
    """
    texts = wikitext(shared, "valid").split("\n") + wikitext(shared, "test").split("\n")
    squad = json.loads(gzip.open(shared / "squad/dev-v1.1.json.gz").read())
    paragraphs = [paragraph for article in squad["data"] for paragraph in article["paragraphs"]]
    texts += [paragraph["context"] for paragraph in paragraphs]
    texts += [question["question"] for paragraph in paragraphs for question in paragraph["qas"]]
    texts = [text for text in texts if text.strip(" ")]
    assert len(texts) >= COUNT
    return texts[:COUNT]


def gemma(path):
    fields = GGUFReader(path).fields
    pieces, scores, types = (fields[f"tokenizer.ggml.{key}"].contents() for key in ("tokens", "scores", "token_type"))
    kinds = protocol.ModelProto.SentencePiece.Type
    model = protocol.ModelProto()
    for i, (piece, score, kind) in enumerate(zip(pieces, scores, types)):
        if kind == kinds.USER_DEFINED:
            piece = piece.replace(" ", "\u2581")  # as in Gemma's own model
        if i == fields["tokenizer.ggml.unknown_token_id"].contents():
            kind = kinds.UNKNOWN
        model.pieces.add(piece=piece, score=score, type=kind)
    model.trainer_spec.model_type = protocol.TrainerSpec.BPE
    model.trainer_spec.byte_fallback = True
    model.trainer_spec.unk_id, model.trainer_spec.bos_id, model.trainer_spec.eos_id, model.trainer_spec.pad_id = (
        3,
        2,
        1,
        0,
    )
    model.trainer_spec.unk_piece, model.trainer_spec.bos_piece = "<unk>", "<bos>"
    model.trainer_spec.eos_piece, model.trainer_spec.pad_piece = "<eos>", "<pad>"
    model.normalizer_spec.name = "identity"
    model.normalizer_spec.add_dummy_prefix = fields["tokenizer.ggml.add_space_prefix"].contents()
    model.normalizer_spec.remove_extra_whitespaces = False
    model.normalizer_spec.escape_whitespaces = True
    return sentencepiece.SentencePieceProcessor(model_proto=model.SerializeToString()).encode


def gpt2(shared):
    with tempfile.TemporaryDirectory() as folder:
        for source, name in (("encoder.json.gz", "vocab.json"), ("vocab.bpe.gz", "merges.txt")):
            (pathlib.Path(folder) / name).write_bytes(gzip.open(shared / "tokenizers/gpt2" / source).read())
        tokenizer = Tokenizer(models.BPE.from_file(f"{folder}/vocab.json", f"{folder}/merges.txt"))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.add_special_tokens(["<|endoftext|>"])
    return lambda text: tokenizer.encode(text, add_special_tokens=False).ids


def llama2(shared):
    return sentencepiece.SentencePieceProcessor(model_file=str(shared / "tokenizers/llama2/tokenizer.model")).encode


def packed(ids):
    return array.array("i", ids).tobytes()


def digest(bytes_of_ids):
    return {"count": len(bytes_of_ids) // 4, "sha256": hashlib.sha256(bytes_of_ids).hexdigest()}


def main():
    shared, model, out = map(pathlib.Path, sys.argv[1:4])
    texts = lines(shared)
    tokenizers = {}
    for name, encode in (("gemma3", gemma(model)), ("gpt2", gpt2(shared)), ("llama2", llama2(shared))):
        ids = [encode(text) for text in texts]
        checksums = array.array("I", (zlib.crc32(packed(line)) for line in ids))
        (out / f"lines-{name}.crc32").write_bytes(checksums.tobytes())
        tokenizers[name] = {
            "lines": digest(b"".join(map(packed, ids))),
            "valid": digest(packed(encode(wikitext(shared, "valid")))),
            "plain": [encode(text) for text in PLAIN],
        }
    golden = {
        "made_by": "python make_lines_golden.py SHARED_DATA GEMMA.gguf ../tokenizers/golden",
        "versions": {
            name: importlib.metadata.version(name) for name in ("gguf", "protobuf", "sentencepiece", "tokenizers")
        },
        "lines": COUNT,
        "lines_sha256": hashlib.sha256("\n".join(texts).encode()).hexdigest(),
        "plain": PLAIN,
        "tokenizers": tokenizers,
    }
    (out / "lines.json").write_text(json.dumps(golden, indent=1) + "\n")


if __name__ == "__main__":
    assert sys.byteorder == "little"
    main()
