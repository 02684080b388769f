"""`open_run` on the run that the repository holds."""

from __future__ import annotations

import pathlib
import shutil

import numpy as np
import pytest

pytest.importorskip("xarray")
h5py = pytest.importorskip("h5py")
pytest.importorskip("h5netcdf")

import gainlens

RUN = pathlib.Path(__file__).parents[2] / "data" / "runs" / "gemma3-270m"


def test_arrays_have_names_and_units():
    run = gainlens.open_run(RUN)
    assert run.kind == "gainlens-sweep" and run.proven
    n_eff = run["summary/n_eff"]
    assert n_eff.dims == ("length", "sample", "layer", "head") and n_eff.attrs["units"] == "keys"
    with h5py.File(RUN / "run.h5") as file:
        assert np.array_equal(n_eff.values, file["summary/n_eff"][:], equal_nan=True)
    assert isinstance(run.request, dict) and "lengths" in run.request


def test_tables():
    run = gainlens.open_run(RUN / "run.h5")
    frame = run.table("summary/n_eff")
    assert list(frame.index.names) == ["length", "sample", "layer", "head"]
    assert frame.attrs["units"] == {"n_eff": "keys"}
    whole = run.table("summary")
    assert {"n_eff", "kalman_gain"} <= set(whole.columns)
    with pytest.raises(KeyError, match="not in .*it has profile, sinks"):
        run.table("sumary")


def test_what_is_no_run(tmp_path):
    with pytest.raises(FileNotFoundError, match="no such file"):
        gainlens.open_run(tmp_path)
    (tmp_path / "run.h5").write_bytes(b"no HDF5")
    with pytest.raises(ValueError, match="no HDF5 file"):
        gainlens.open_run(tmp_path)
    with h5py.File(tmp_path / "run.h5", "w") as file:
        file.attrs["format"] = "other"
    with pytest.raises(ValueError, match="no run of gainlens"):
        gainlens.open_run(tmp_path)
    (tmp_path / "run.h5").unlink()
    (tmp_path / "intervene.json").write_text("{}")
    with pytest.raises(ValueError, match="intervene.json"):
        gainlens.open_run(tmp_path)


def test_changed_and_newer_files(tmp_path):
    shutil.copytree(RUN, tmp_path / "run")
    with h5py.File(tmp_path / "run" / "run.h5", "a") as file:
        file.attrs["format_version"] = 2
    with pytest.raises(ValueError, match="differs from its stored checksum"):
        gainlens.open_run(tmp_path / "run")
    (tmp_path / "run" / "run.h5.sha256").unlink()
    (tmp_path / "run" / "log.json").unlink()
    with pytest.raises(ValueError, match="format version 2"):
        gainlens.open_run(tmp_path / "run")
