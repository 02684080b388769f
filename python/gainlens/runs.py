"""Runs of the program as labelled arrays."""

from __future__ import annotations

import hashlib
import json
import os
import pathlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas
    import xarray

FORMATS = {
    "gainlens-sweep": "a sweep of a language model",
    "gainlens-recommend": "trained recommenders",
    "gainlens-recommender-sweep": "a sweep of recommenders",
    "gainlens-experiment": "an experiment: arms and seeds on the same units",
}
"""The kinds of `run.h5`, by its attribute `format`."""

_JSON_RESULTS = ("intervene.json", "patching.json", "gate-arms.json", "depth.json")


class Run:
    """A run: `tree` is its `run.h5`, `table` a group of it as a data frame."""

    def __init__(self, path: pathlib.Path, tree: xarray.DataTree, proven: bool) -> None:
        self.path = path
        self.tree = tree
        self.proven = proven
        """Whether the file was compared with a stored checksum."""

    @property
    def kind(self) -> str:
        """The `format` of the file: one of FORMATS."""
        return _text(self.tree.attrs["format"])

    @property
    def request(self) -> dict[str, Any]:
        """What determines the numbers."""
        found: dict[str, Any] = json.loads(_text(self.tree["request"].values.item()))
        return found

    def __getitem__(self, name: str) -> xarray.DataTree | xarray.DataArray:
        return self.tree[name]

    def table(self, name: str) -> pandas.DataFrame:
        """A group such as "summary", or an array such as "summary/n_eff", as a data frame; axes are its index.

        Missing numbers are NaN; why they are missing stands in docs/run-file.md.
        """
        import xarray

        try:
            node = self.tree[name]
        except KeyError:
            known = ", ".join(group.strip("/") for group in self.tree.groups if group != "/")
            raise KeyError(f"{name}: not in {self.path}; it has {known}") from None
        if isinstance(node, xarray.DataArray):
            frame: pandas.DataFrame = node.to_dataframe(name=name.rsplit("/", 1)[-1])
            frame.attrs["units"] = {frame.columns[-1]: node.attrs.get("units", "")}
            return frame
        dataset = node.to_dataset()
        frame = dataset[[word for word in dataset if dataset[word].dims]].to_dataframe()
        frame.attrs["units"] = {word: dataset[word].attrs.get("units", "") for word in frame.columns if word in dataset}
        return frame


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _checksum(file: pathlib.Path) -> str:
    digest = hashlib.sha256()
    with open(file, "rb") as opened:
        while block := opened.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def _stored_checksum(file: pathlib.Path) -> str | None:
    """The checksum of `run.h5` in `run.h5.sha256`, or in the `log.json` of its run."""
    beside = file.with_name(file.name + ".sha256")
    if beside.exists():
        return beside.read_text().split()[0].lower()
    log = file.with_name("log.json")
    if file.name == "run.h5" and log.exists():
        found = json.loads(log.read_text()).get("combined")
        if isinstance(found, dict):
            found = found.get("sha256")
        return found if isinstance(found, str) else None
    return None


def open_run(path: str | os.PathLike[str]) -> Run:
    """Opens a finished run: its folder, or its `run.h5`. Numbers are read when they are asked for.

    @raises FileNotFoundError  there is no run, or it is not finished
    @raises ValueError         the file is no run, differs from its stored checksum, or is of a newer version
    """
    import xarray

    place = pathlib.Path(path)
    file = place / "run.h5" if place.is_dir() else place
    if not file.exists():
        results = [name for name in _JSON_RESULTS if (place / name).exists()]
        if results:
            raise ValueError(f"{place}: a run whose result is {results[0]}; read it with json.load, or draw it with "
                             "`gainlens report`")
        raise FileNotFoundError(f"{file}: no such file; a run that was stopped has none, repeat its command to finish "
                                "it")
    stored = _stored_checksum(file)
    if stored is not None and _checksum(file) != stored:
        raise ValueError(f"{file}: differs from its stored checksum; it was changed after it was written")
    try:
        tree = xarray.open_datatree(file, engine="h5netcdf")
    except (OSError, TypeError) as error:
        raise ValueError(f"{file}: is no HDF5 file: {error}") from error
    kind = _text(tree.attrs.get("format", ""))
    if kind not in FORMATS:
        raise ValueError(f"{file}: is no run of gainlens (its `format` is '{kind[:40]}')")
    if int(tree.attrs.get("format_version", 0)) != 1:
        raise ValueError(f"{file}: has format version {tree.attrs.get('format_version')}; this package reads version 1")
    return Run(file, tree, stored is not None)
