"""The built file: which symbols it needs, and that no library of torch lies beside it."""

from __future__ import annotations

import pathlib
import re
import shutil
import subprocess

import pytest

from gainlens import _operators

ALLOWED = re.compile(
    r"^(?:aoti_torch_\w+|torch_\w+"  # the stable ABI of torch, in C
    r"|_ZN3hwy\w+"                   # Highway
    r"|_ZN?[KVS0-9]*St\w*|_ZS[tS]\w*|_ZT[IVS]\w*|_ZNK?S\w+|_Zn\w+|_Zd\w+|__cxa_\w+|__gxx_personality_v0|_Unwind_\w+"
    r"|__dynamic_cast|__once_proxy"  # the library of C++
    r"|_ITM_\w+|__gmon_start__|[a-z_0-9A-Z]*)$"  # C
)


def undefined_symbols() -> list[tuple[str, str]]:
    if shutil.which("nm") is None:
        pytest.skip("nm is not installed")
    listing = subprocess.run(["nm", "-D", "--undefined-only", _operators.LIBRARY], check=True, capture_output=True,
                             text=True).stdout
    return [(line.split()[0], line.split()[1].split("@")[0]) for line in listing.splitlines()]


def test_needs_no_symbol_of_torch_beyond_its_stable_abi():
    names = [name for _, name in undefined_symbols()]
    assert any(name.startswith("aoti_torch_") for name in names)
    of_torch = [name for name in names if re.search(r"_ZN?K?\d*(?:at|c10|torch|caffe2)\d|3c10|2at\d|5torch", name)]
    assert of_torch == []
    assert [name for name in names if not ALLOWED.match(name)] == []


def test_needs_no_symbol_of_python():
    assert [name for _, name in undefined_symbols() if name.startswith(("Py", "_Py"))] == []


def test_holds_no_path_and_no_library_of_torch():
    if shutil.which("readelf") is None:
        pytest.skip("readelf is not installed")
    dynamic = subprocess.run(["readelf", "-d", _operators.LIBRARY], check=True, capture_output=True, text=True).stdout
    assert "RUNPATH" not in dynamic and "RPATH" not in dynamic
    beside = [path.name for path in pathlib.Path(_operators.LIBRARY).parent.glob("*.so*")]
    assert beside == ["gainlens_operators.so"]
