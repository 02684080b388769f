"""Opens a recommender run with h5py and with both HDF5 engines of xarray, and checks datasets, types, coordinates, and
that the test metrics are those of the ranks.

Usage: recommend_run_in_python.py PROGRAM, where `PROGRAM FOLDER recommend` makes the uneven run of
tests/runfile/made_recommend_run.h. Exit code 77: xarray, h5py or an engine is not installed.
"""

import json
import subprocess
import sys
import tempfile

try:
    import h5netcdf  # noqa: F401
    import h5py
    import netCDF4  # noqa: F401
    import numpy as np
    import xarray as xr
except ImportError as error:
    print(f"SKIPPED: {error}; pip install h5py xarray h5netcdf netCDF4")
    sys.exit(77)

ARMS, SEEDS, USERS, ITEMS = ["plain", "bft", "popularity"], [0, 1, 2], 60, 25
TRAINED = [[True] * 3, [True, False, True], [True] * 3]
KINDS = {"hr": lambda r: np.ones_like(r), "ndcg": lambda r: 1 / np.log2(1 + r), "mrr": lambda r: 1 / r}


def metric_of(name, rank):
    kind, _, cutoff = name.partition("@")
    value = KINDS[kind](rank)
    return np.where(rank <= int(cutoff), value, 0).mean(-1) if cutoff else value.mean(-1)


def check_stored(path):
    """With h5py: types, storage and values."""
    with h5py.File(path) as run:
        assert run.attrs["format"].decode() == "gainlens-recommend" and run.attrs["format_version"] == 1
        request = json.loads(run["request"].asstr()[()])
        assert request["backbone"] == "sasrec" and request["data"]["users"] == USERS
        assert list(run["arm"].asstr()[()]) == ARMS and list(run["seed"][()]) == SEEDS
        assert run["user"].asstr()[3] == "user-3"
        for name in ("target", "history_length", "training_length"):
            assert run[name].dtype == np.int64 and run[name].shape == (USERS,), name
        assert run["item/train_count"].dtype == np.int64 and run["item/train_count"].shape == (ITEMS,)
        assert run["item/train_count"][()].sum() == run["training_length"][()].sum()
        assert list(run["item/item"][()]) == list(range(1, ITEMS + 1))
        rank = run["rank"]
        assert rank.dtype == np.float32 and rank.compression == "gzip" and rank.shuffle and rank.fletcher32
        assert (np.isfinite(rank[()]).all(-1) == TRAINED).all() and (np.isnan(rank[()]).any(-1) != TRAINED).all()
        best = run["best_epoch"][()]
        assert best.dtype == np.int64 and (best[2] == 0).all() and best[1, 1] == -1 and (best[0] >= 3).all()
        for name, stored in run["test"].items():
            if name not in ("arm", "seed"):
                assert stored.dtype == np.float64
                expected = np.where(TRAINED, metric_of(name, rank[()].astype(float)), np.nan)
                np.testing.assert_allclose(stored[()], expected, rtol=1e-12, err_msg=name)
        check_curves(run["metric"], best)


def check_curves(group, best):
    epochs = group["epoch"][()]
    assert set(group) == {"arm", "seed", "epoch", "training_loss", "ndcg@10"}, set(group)
    assert list(epochs) == list(range(1, best.max() + 1))
    for name in ("training_loss", "ndcg@10"):
        stored = group[name]
        assert stored.dtype == np.float64
        assert (np.isfinite(stored[()]) == (epochs <= best[..., None])).all(), name
        assert "units" in stored.attrs and "long_name" in stored.attrs, name
    np.testing.assert_array_equal(group["training_loss"][0, 0, :3], 3 / np.array([1.0, 2.0, 3.0]))


def check_opened(path, engine):
    """With xarray: dimensions and coordinates of each group."""
    with xr.open_dataset(path, engine=engine) as root:
        assert root["rank"].dims == ("arm", "seed", "user")
        assert root["best_epoch"].dims == ("arm", "seed") and root["target"].dims == ("user",)
        one = root["rank"].sel(arm="bft", seed=2)
        assert one.shape == (USERS,) and str(one.user.values[5]) == "user-5"
    with xr.open_dataset(path, engine=engine, group="metric") as metric:
        assert metric["ndcg@10"].dims == ("arm", "seed", "epoch")
        assert [str(arm) for arm in metric.arm.values] == ARMS and list(metric.seed.values) == SEEDS
        assert metric["training_loss"].sel(arm="plain", seed=1, epoch=2) == 1.5
    with xr.open_dataset(path, engine=engine, group="test") as test:
        assert test["hr@10"].dims == ("arm", "seed") and len(test.data_vars) == 8
        assert np.isnan(test["mrr"].sel(arm="bft", seed=1))
    with xr.open_dataset(path, engine=engine, group="item") as item:
        assert item["train_count"].dims == ("item",) and item.item.values[0] == 1
    print(f"{engine}: every group has its dimensions and coordinates")


with tempfile.TemporaryDirectory() as folder:
    subprocess.run([sys.argv[1], folder, "recommend"], check=True)
    check_stored(f"{folder}/run.h5")
    for each_engine in ("h5netcdf", "netcdf4"):
        check_opened(f"{folder}/run.h5", each_engine)
