"""Makes the expected data for the tests of GGUF files with the public package `gguf`: blocks of every format with the
float32 values that the package computes from them (blocks.safetensors), and a file with every kind of metadata
(kinds.gguf).

Run: python tests/formats/golden/make_gguf_golden.py

Needs gguf, numpy and safetensors; their versions are stored in blocks.safetensors.
"""

import pathlib

import gguf
import numpy as np
from importlib.metadata import version
from safetensors.numpy import save_file

FOLDER = pathlib.Path(__file__).parent
RANDOM_BLOCKS = 12

# Bytes of a block that hold a half, and bytes that hold packed scales of groups. The tests cover every pattern of these
# bytes.
HALVES = {
    "Q8_0": [0],
    "Q4_0": [0],
    "Q4_1": [0, 2],
    "Q5_0": [0],
    "Q5_1": [0, 2],
    "Q2_K": [80, 82],
    "Q3_K": [108],
    "Q4_K": [0, 2],
    "Q5_K": [0, 2],
    "Q6_K": [208],
    "MXFP4": [],
    "IQ4_NL": [0],
    "IQ4_XS": [0],
}
SCALES = {
    "Q2_K": range(0, 16),
    "Q3_K": range(96, 108),
    "Q4_K": range(4, 16),
    "Q5_K": range(4, 16),
    "Q6_K": range(192, 208),
    "MXFP4": range(0, 1),
    "IQ4_XS": range(2, 8),
}
# a scale such as one or two would hide that the scale is left out
AWKWARD_HALVES = {
    "zero": 0x0000,
    "minus zero": 0x8000,
    "least subnormal": 0x0001,
    "largest subnormal": 0x03FF,
    "least normal": 0x0400,
    "largest": 0x7BFF,
    "minus largest": 0xFBFF,
    "infinity": 0x7C00,
    "minus infinity": 0xFC00,
    "quiet NaN": 0x7E00,
    "signalling NaN": 0x7D01,
}


def blocks_of(name, generator):
    _, size = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[name]]

    def random_block():
        block = generator.integers(0, 256, size, dtype=np.uint8)
        for place in HALVES[name]:  # numbers of moderate size; random bytes would mostly be huge numbers
            block[place : place + 2] = np.frombuffer(np.float16(generator.normal() * 0.1).tobytes(), np.uint8)
        return block

    blocks = [random_block() for _ in range(RANDOM_BLOCKS)]
    blocks += [
        np.zeros(size, np.uint8),
        np.full(size, 0xFF, np.uint8),
        generator.integers(0, 256, size, dtype=np.uint8),
    ]
    for place in HALVES[name]:
        for bits in AWKWARD_HALVES.values():
            block = random_block()
            block[place : place + 2] = [bits & 0xFF, bits >> 8]
            blocks.append(block)
    places = list(SCALES.get(name, []))
    for first in range(0, 256, len(places)) if places else []:  # every byte in the scales
        block = random_block()
        block[places] = (first + np.arange(len(places))) % 256
        blocks.append(block)
    return np.stack(blocks)


def save_blocks():
    generator = np.random.default_rng(20261121)
    tensors = {}
    for name in HALVES:
        blocks = blocks_of(name, generator)
        with np.errstate(all="ignore"):
            values = gguf.quants.dequantize(blocks, gguf.GGMLQuantizationType[name])
        tensors[f"{name}.blocks"] = blocks
        tensors[f"{name}.values"] = np.ascontiguousarray(values, dtype=np.float32)
    save_file(tensors, FOLDER / "blocks.safetensors", {"gguf": version("gguf"), "numpy": version("numpy")})


def save_kinds():
    writer = gguf.GGUFWriter(FOLDER / "kinds.gguf", "llama")
    writer.add_uint8("kind.u8", 200)
    writer.add_int8("kind.i8", -100)
    writer.add_uint16("kind.u16", 60000)
    writer.add_int16("kind.i16", -30000)
    writer.add_uint32("kind.u32", 4000000000)
    writer.add_int32("kind.i32", -2000000000)
    writer.add_float32("kind.f32", 0.1)
    writer.add_bool("kind.bool", True)
    writer.add_string("kind.string", "Grüße")
    writer.add_uint64("kind.u64", 2**63)
    writer.add_int64("kind.i64", -(2**62))
    writer.add_float64("kind.f64", 0.1)
    writer.add_array("list.texts", ["a", "", "▁the"])
    writer.add_array("list.integers", [3, -1, 2])
    writer.add_array("list.numbers", [0.5, -1000.0])
    writer.add_array("list.booleans", [True, False, True])
    writer.add_tensor("matrix", np.arange(6, dtype=np.float32).reshape(2, 3))
    writer.add_tensor("half", np.array([1.0, -2.0], dtype=np.float16))
    writer.add_tensor(
        "quantised",
        gguf.quants.quantize(np.arange(64, dtype=np.float32).reshape(2, 32), gguf.GGMLQuantizationType.Q8_0),
        raw_dtype=gguf.GGMLQuantizationType.Q8_0,
    )
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


save_blocks()
save_kinds()
