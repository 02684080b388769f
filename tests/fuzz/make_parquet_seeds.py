"""Makes the Parquet seeds of corpus/interactions again, with pyarrow 26: small data sets, one for each way in which
Arrow stores a column. Usage: python3 tests/fuzz/make_parquet_seeds.py tests/fuzz/corpus/interactions"""
import pathlib
import sys

import pyarrow
import pyarrow.parquet

folder = pathlib.Path(sys.argv[1])
ROWS = 48
users = ["ann", "bob", "zoë", "user " + "0123456789" * 3]
columns = {"user": pyarrow.array([users[row % 7 % 4] for row in range(ROWS)]),
           "item": pyarrow.array([(row * row) % 11 + 8_000_000_000 * (row % 13 == 0) for row in range(ROWS)]),
           "time": pyarrow.array([1_600_000_000 + 37 * row for row in range(ROWS)])}
stamps = columns | {"time": columns["time"].cast(pyarrow.timestamp("s")).cast(pyarrow.timestamp("us"))}
texts = columns | {"time": columns["time"].cast(pyarrow.string())}


def write(name, data, **options):
    pyarrow.parquet.write_table(pyarrow.table(data), folder / f"{name}.parquet", row_group_size=20, store_schema=False,
                                **options)


write("dictionary", columns, compression="snappy")
write("plain", stamps, compression="zstd", use_dictionary=False, data_page_version="2.0", write_statistics=False)
write("delta", columns, compression="none", use_dictionary=False,
      column_encoding={"user": "DELTA_BYTE_ARRAY", "item": "DELTA_BINARY_PACKED", "time": "DELTA_BINARY_PACKED"})
write("split", texts, compression="gzip", use_dictionary=False, data_page_version="2.0",
      column_encoding={"user": "DELTA_LENGTH_BYTE_ARRAY", "item": "BYTE_STREAM_SPLIT", "time": "DELTA_BYTE_ARRAY"})
write("sums", columns, compression="lz4", write_page_checksum=True, write_page_index=True, data_page_size=100)
write("int96", stamps, compression="brotli", use_deprecated_int96_timestamps=True)
