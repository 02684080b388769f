"""Opens the run of an experiment with h5py and xarray, and checks types, coordinates, and that metrics are the means of
the scores.

Usage: experiment_run_in_python.py PROGRAM, where `PROGRAM FOLDER experiment` makes the uneven run of
tests/runfile/made_experiment_run.h. Exit code 77: xarray, h5py or its engine is not installed.
"""

import json
import subprocess
import sys
import tempfile

try:
    import h5netcdf  # noqa: F401
    import h5py
    import numpy as np
    import xarray as xr
except ImportError as error:
    print(f"SKIPPED: {error}; pip install h5py xarray h5netcdf")
    sys.exit(77)

ARMS, DOCUMENTS = ["plain", "bft/wide", "unigram"], 40
FINISHED = np.array([[True] * 3, [True, False, True], [True] * 3])

with tempfile.TemporaryDirectory() as folder:
    subprocess.run([sys.argv[1], folder, "experiment"], check=True)
    path = f"{folder}/run.h5"
    with h5py.File(path) as run:
        assert run.attrs["format"].decode() == "gainlens-experiment" and run.attrs["format_version"] == 1
        assert json.loads(run["request"].asstr()[()])["unit"] == "document"
        assert list(run["score_name"].asstr()[()]) == ["loss", "right"]
        assert list(run["score_better"].asstr()[()]) == ["lower", "higher"]
        assert list(run["metric_name"].asstr()[()]) == ["loss", "perplexity", "right"]
        assert ((run["best_epoch"][()] >= 0) == FINISHED).all()
        for name in ("loss", "right"):
            scores, metric = run["score"][name], run["test"][name][()]
            assert scores.dtype == np.float64 and scores.shape == (3, 3, DOCUMENTS)
            assert scores.compression == "gzip" and scores.shuffle and scores.fletcher32
            assert (np.isfinite(scores[()]).all(-1) == FINISHED).all()
            assert np.allclose(scores[()].mean(-1)[FINISHED], metric[FINISHED], rtol=1e-14)
            assert np.isnan(metric[~FINISHED]).all()
    root = xr.open_dataset(path, engine="h5netcdf")
    assert root["score_better"].dims == ("score_name",) and root["best_epoch"].dims == ("arm", "seed")
    scores = xr.open_dataset(path, group="score", engine="h5netcdf")
    assert list(scores.arm.values) == ARMS and list(scores.seed.values) == [0, 1, 2]
    assert scores.unit.values[3] == "document-3"
    assert scores["loss"].sel(arm="bft/wide", seed=2).shape == (DOCUMENTS,)
    assert scores["loss"].attrs["units"] == "nats"
