"""Opens every group of a run.h5 with xarray, with both of its HDF5 engines, and checks dimensions, coordinates and
attributes.

Usage: open_in_xarray.py PROGRAM, where `PROGRAM FOLDER` makes the run of tests/runfile/made_run.h.
Exit code 77: xarray or an engine is not installed.
"""

import subprocess
import sys
import tempfile

try:
    import h5netcdf  # noqa: F401
    import netCDF4  # noqa: F401
    import numpy as np
    import xarray as xr
except ImportError as error:
    print(f"SKIPPED: {error}; pip install xarray h5netcdf netCDF4")
    sys.exit(77)

LENGTHS = [8, 24]
COORDINATES = {
    "length": LENGTHS,
    "sample": [0, 1],
    "layer": [3, 5],
    "head": [0, 1, 2, 3],
    "kv_head": [0, 1],
    "bin": list(range(64)),
    "key": list(range(8)),
    "rank": list(range(16)),
    "largest": list(range(3)),
}
# The coordinates besides the dimension scales: axes, type, values. Chunks have a BOS, so 7 and 23 tokens of text. The
# window of 512 hides nothing.
OTHERS = {
    "attention": (("layer",), np.str_, ["global", "window:512"]),
    "kv_head_of_head": (("head",), np.int64, [0, 0, 1, 1]),
    "bin_begin": (("bin",), np.float64, np.arange(64) / 64),
    "bin_end": (("bin",), np.float64, np.arange(1, 65) / 64),
    "token_offset": (("length", "sample"), np.int64, [[0, 7], [0, 23]]),
    "key_0_visible": (("length", "layer"), np.int8, [[2, 2], [2, 2]]),
}
RUN = ("length", "sample")
HEADS = RUN + ("layer", "head")


def check_coordinates(data, names, extra):
    expected = {**COORDINATES, **extra}
    for name in names:
        np.testing.assert_array_equal(data.coords[name].values, expected[name], err_msg=name)
        assert data.coords[name].dtype == np.int64, (name, data.coords[name].dtype)
        assert {"units", "long_name"} <= data.coords[name].attrs.keys(), name


def check_others(data, place=None):
    """Checks the other coordinates of a group: those whose axes it has, and no others.

    place: of the group's one length among LENGTHS; such a group has no length axis.
    """
    expected = {}
    for name, (dims, kind, values) in OTHERS.items():
        if place is not None and "length" in dims:
            dims, values = dims[1:], values[place]
        if set(dims) <= set(data.dims):
            expected[name] = (dims, kind, values)
    assert set(data.coords) - set(data.dims) == expected.keys(), set(data.coords)
    for name, (dims, kind, values) in expected.items():
        check_other(data.coords[name], dims, kind, values)


def check_other(stored, dims, kind, values):
    assert stored.dims == dims, (stored.name, stored.dims)
    if kind is np.str_:
        assert [str(value) for value in stored.values] == values, stored.values
    else:
        assert stored.dtype == kind and "units" in stored.attrs, (stored.name, stored.dtype)
        np.testing.assert_array_equal(stored.values, values, err_msg=stored.name)
    assert "long_name" in stored.attrs, stored.name


def check_variable(data, name, dims):
    assert data[name].dims == dims, (name, data[name].dims)
    assert data[name].dtype == np.float32, (name, data[name].dtype)
    assert "long_name" in data[name].attrs and "units" in data[name].attrs, name


def made_value(length, sample, index):
    """The same as made_value in tests/runfile/made_run.h."""
    return np.float32(sample + length / 1000 + index / 2**20)


def check_run(path, engine):
    def group(name, dims, extra=None, place=None):
        data = xr.open_dataset(path, engine=engine, group=name)
        check_coordinates(data, dims, extra or {})
        assert set(data.dims) == set(dims), (name, set(data.dims))
        check_others(data, place)
        return data

    with xr.open_dataset(path, engine=engine) as root:
        assert root.attrs["format"] == "gainlens-sweep" and root.attrs["format_version"] == 1
        assert root["complete"].dims == RUN and (root["complete"].values == 1).all()
        assert root["attention"].dims == ("layer",)
        assert [str(kind) for kind in root["attention"].values] == ["global", "window:512"]
        assert '"family":"made"' in str(root["request"].values)
        check_coordinates(root, COORDINATES, {})
        for name, (dims, kind, values) in OTHERS.items():
            check_other(root[name], dims, kind, values)
        assert root.attrs["family"] == "made" and "float32 on cpu" in root.attrs["source"]
        assert {"Conventions", "title", "references"} <= root.attrs.keys()

    with group("summary", HEADS + ("key",)) as summary:
        check_variable(summary, "n_eff", HEADS)
        check_variable(summary, "gate_var", HEADS)
        check_variable(summary, "estimate_norm_var", HEADS)
        check_variable(summary, "sink_bound_slack_min", HEADS)
        check_variable(summary, "first_mass", HEADS + ("key",))
        check_variable(summary, "nll", RUN)
        one = summary["n_eff"].sel(length=24, sample=1, layer=5, head=2)
        assert one == made_value(24, 1, 1 * 4 + 2)
        assert one.token_offset == 23 and one.kv_head_of_head == 1 and str(one.attention.values) == "window:512"
        assert "key_0_visible" in summary["bos_mass"].attrs["comment"]
    with group("profile", HEADS + ("bin",)) as profile:
        check_variable(profile, "kalman_gain", HEADS + ("bin",))
    with group("values", RUN + ("layer", "kv_head", "bin", "key")) as values:
        check_variable(values, "norm", RUN + ("layer", "kv_head", "bin"))
        check_variable(values, "min_norm", RUN + ("layer", "kv_head"))
        check_variable(values, "variance", RUN + ("layer", "kv_head"))
        check_variable(values, "first_norm", RUN + ("layer", "kv_head", "key"))
    with group("sinks", HEADS + ("rank",)) as sinks:
        check_variable(sinks, "column_mean", HEADS + ("rank",))
        for name in ("position", "token", "queries", "stream_dimension"):
            assert sinks[name].dtype == np.int64 and "-1" in sinks[name].attrs["comment"], name
        one = sinks.sel(length=24, sample=1, layer=5, head=2, rank=3)
        place = (1 * 4 + 2) * 16 + 3
        assert one["position"] == -1 if place % 5 == 4 else (24 + 1 + place) % 8
        assert str(sinks["text"].sel(length=24, sample=1, layer=5, head=0, rank=1).values) == f"\u258124.{1 + 4 * 16 + 1}"
    with group("stream", RUN + ("layer", "largest")) as stream:
        check_variable(stream, "value", RUN + ("layer", "largest"))
        check_variable(stream, "median", RUN + ("layer",))
        assert stream["position"].dtype == np.int64
    for place, length in enumerate(LENGTHS):
        axes = ("sample", "layer", "head", "query")
        with group(f"queries/{length}", axes + ("key",), {"query": list(range(length))}, place) as queries:
            check_variable(queries, "gate", axes)
            check_variable(queries, "first_mass", axes + ("key",))
            one = queries["gate"].sel(sample=1, layer=5, head=3, query=length - 1)
            assert one == made_value(length, 1, (1 * 4 + 3) * length + length - 1)


with tempfile.TemporaryDirectory() as folder:
    subprocess.run([sys.argv[1], folder], check=True)
    for each_engine in ("h5netcdf", "netcdf4"):
        check_run(f"{folder}/run.h5", each_engine)
        print(f"{each_engine}: every group has its dimensions and coordinates")
