"""Makes Parquet files and CSV files of the same tables, for tests/data/parquet_test.cpp and broken_parquet_test.cpp.

    python make_parquet_golden.py

Needs pyarrow; made with pyarrow 26.0.1. Writes beside this script:
  ratings.parquet, ratings.csv   a usual data set: names of users in a dictionary, items as numbers, times of
                                 microseconds, columns that nobody reads, five row groups, ZSTD, checksums of pages
  small.parquet, small.csv       likewise in 1 kB: two row groups, for tests that damage it
  kinds.parquet, kinds.csv       one column of each type, SNAPPY, pages of the second version; the CSV has those that
                                 hold names or times
  empty.parquet                  no rows
  encrypted.parquet              a plain footer and encrypted columns; random, so it differs each time
  int96.parquet                  old timestamps
"""

import csv
import datetime
import decimal
import pathlib
import random

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe

HERE = pathlib.Path(__file__).parent
UTC = datetime.timezone.utc
START = datetime.datetime(2023, 12, 31, 23, 59, 58, tzinfo=UTC)


def write_csv(name, columns):
    with open(HERE / name, "w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(columns)
        rows.writerows(zip(*columns.values()))


def small():
    users, items = ["u", "v", "w"] * 6, list(range(18))
    times = [START + datetime.timedelta(microseconds=step * 1234567) for step in range(18)]
    table = pa.table({"user": users, "item": items, "time": pa.array(times, pa.timestamp("us", tz="UTC"))})
    pq.write_table(table, HERE / "small.parquet", row_group_size=10, compression="zstd", write_page_checksum=True,
                   write_statistics=False, store_schema=False)
    write_csv("small.csv", {"user": users, "item": items, "time": [t.isoformat() for t in times]})


def ratings():
    random.seed(1)
    users, items, times = [], [], []
    for step in range(78):
        users.append(random.choice(["ann", "b,o", "zoë", 'qu"ote', "u5"]))
        items.append(random.choice([3, 20, 100, 7, 8000000000]))
        times.append(START + datetime.timedelta(microseconds=step * 1234567 + random.randrange(1000)))
    table = pa.table({
        "stars": pa.array([random.choice([None, 1.5, 5.0]) for _ in users], pa.float32()),
        "user_id": pa.array(users).dictionary_encode(),
        "tags": pa.array([["a", "b"], []] * (len(users) // 2), pa.list_(pa.string())),
        "item_id": pa.array(items, pa.int64()),
        "when": pa.array(times, pa.timestamp("us", tz="Europe/Berlin")),
    })
    pq.write_table(table, HERE / "ratings.parquet", row_group_size=16, compression="zstd", write_page_checksum=True)
    write_csv("ratings.csv", {"user_id": users, "item_id": items, "when": [t.isoformat() for t in times]})


def kinds():
    count = 6
    users = ["u", "u", "v", "u", "v", "u"]
    first, step = datetime.datetime(1969, 12, 31, 23, 59, 59, 999000), datetime.timedelta(days=5000, milliseconds=17)
    moments = [first + i * step for i in range(count)]
    whole = [0, 7, 2**31, 2**53 - 1, 12, 3]
    names = {
        "text": (pa.array([f"i{n}" for n in whole]), [f"i{n}" for n in whole]),
        "large": (pa.array([f"i{n}" for n in whole], pa.large_string()), [f"i{n}" for n in whole]),
        "binary": (pa.array([f"i{n}".encode() for n in whole], pa.binary()), [f"i{n}" for n in whole]),
        "dictionary": (pa.array(["a", "b"] * 3).dictionary_encode(), ["a", "b"] * 3),
        "int8": (pa.array([-128, 5, 127, 6, 7, 8], pa.int8()), [-128, 5, 127, 6, 7, 8]),
        "uint32": (pa.array([2**32 - 1, 5, 4, 3, 2, 1], pa.uint32()), [2**32 - 1, 5, 4, 3, 2, 1]),
        "int64": (pa.array(whole, pa.int64()), whole),
        "uint64": (pa.array([2**64 - 1, 5, 4, 3, 2, 1], pa.uint64()), [2**64 - 1, 5, 4, 3, 2, 1]),
        "whole": (pa.array([float(n) for n in whole], pa.float64()), whole),
    }
    iso = [m.isoformat() for m in moments]
    days = [m.date() for m in moments]
    times = {
        "date": (pa.array(days, pa.date32()), [d.isoformat() for d in days]),
        "seconds": (pa.array([m.replace(microsecond=0) for m in moments], pa.timestamp("s")),
                    [m.replace(microsecond=0).isoformat() for m in moments]),
        "millis": (pa.array(moments, pa.timestamp("ms")), iso),
        "micros": (pa.array(moments, pa.timestamp("us")), iso),
        "nanos": (pa.array(moments, pa.timestamp("ns")), iso),
        "iso": (pa.array(iso), iso),
        "digits": (pa.array([str(n) for n in whole]), whole),
        "real": (pa.array([0.25 * n for n in range(count)], pa.float64()), [0.25 * n for n in range(count)]),
    }
    others = {
        "fraction": pa.array([1.0, 2.5, 3.0, 4.0, 5.5, 6.0]),
        "beyond": pa.array([2.0**53] * count),
        "nan": pa.array([float("nan")] * count),
        "truth": pa.array([True, False] * 3),
        "money": pa.array([decimal.Decimal("1.50")] * count, pa.decimal128(5, 2)),
        "clock": pa.array([datetime.time(1, 2)] * count, pa.time64("us")),
        "list": pa.array([["a"]] * count),
        "struct": pa.array([{"user": "a"}] * count),
        "map": pa.array([[("a", 1)]] * count, pa.map_(pa.string(), pa.int8())),
        "nothing": pa.nulls(count),
        "gap": pa.array(["a", "b", None, "c", None, "d"]),
        "time gap": pa.array([1, None, 3, 4, 5, 6]),
        "escape\x1b[2J": pa.array(["a\x1b[2J"] * count),
        "mixed": pa.array(["1", "2", "2024-01-31", "4", "5", "6"]),
        "soon": pa.array(["1", "2", "soon\x1b[2J", "4", "5", "6"]),
    }
    columns = {"user": pa.array(users)}
    columns.update({name: array for name, (array, _) in (names | times).items()})
    columns.update(others)
    pq.write_table(pa.table(columns), HERE / "kinds.parquet", compression="snappy", data_page_version="2.0",
                   write_statistics=False, store_schema=False)
    write_csv("kinds.csv", {"user": users} | {name: texts for name, (_, texts) in (names | times).items()})
    # Timestamps as Spark wrote them for a long time: 96 bits.
    old = pa.table({"user": users, "item": whole, "time": times["nanos"][0]})
    pq.write_table(old, HERE / "int96.parquet", use_deprecated_int96_timestamps=True, write_statistics=False,
                   store_schema=False, use_dictionary=False)


class NoSecret(pe.KmsClient):
    """Keeps the key where everybody can read it: the file is for a test."""

    def __init__(self, _configuration):
        super().__init__()

    def wrap_key(self, key_bytes, _name):
        return key_bytes.hex()

    def unwrap_key(self, wrapped_key, _name):
        return bytes.fromhex(wrapped_key)


def encrypted():
    table = pa.table({"user": ["u", "v"], "item": [1, 2]})
    properties = pe.CryptoFactory(NoSecret).file_encryption_properties(
        pe.KmsConnectionConfig(),
        pe.EncryptionConfiguration(footer_key="f", column_keys={"c": ["user", "item"]}, plaintext_footer=True))
    with pq.ParquetWriter(HERE / "encrypted.parquet", table.schema, encryption_properties=properties) as writer:
        writer.write_table(table)


def between_microseconds():
    times = pa.array([1_700_000_000_000_000_000, 1_700_000_000_000_000_100], pa.timestamp("ns"))
    table = pa.table({"user": ["u", "u"], "item": [1, 2], "time": times})
    pq.write_table(table, HERE / "nanoseconds.parquet", store_schema=False)


ratings()
small()
kinds()
encrypted()
between_microseconds()
pq.write_table(pa.table({"user": pa.array([], pa.string()), "item": pa.array([], pa.int64())}), HERE / "empty.parquet")
