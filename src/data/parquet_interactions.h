#pragma once

#include "data/interactions.h"
#include "data/raw_interactions.h"

#include <filesystem>
#include <optional>

namespace gainlens::data {

/// Whether a regular file begins as Parquet files do, or as encrypted ones do.
bool is_parquet(const std::filesystem::path& path);

/// The module that reads Parquet: of an installed program in ../lib/gainlens beside its folder, else where this library
/// was built. Nothing if it is in neither place.
std::optional<std::filesystem::path> parquet_module();

/// Reads the columns of users, items and times of a Parquet file, row group by row group. Users and items are texts or
/// whole numbers; real numbers are taken if they are whole and below 2^53, since programs store whole numbers so if one
/// is missing. Times are numbers, texts as in tables, dates or timestamps of any unit. No value may be null.
/// @param module  is loaded, and stays so until the process ends
/// @throws InvalidArgument  no module, or one that cannot be loaded; a broken, truncated or encrypted file; as
///     find_columns(); a column that holds something else (nested values, truth values); null; names and times as in
///     read_interactions(); no rows; a delimiter or --no-header
RawInteractions read_parquet_interactions(const std::filesystem::path& path, const ColumnOptions& options,
                                          const std::optional<std::filesystem::path>& module = parquet_module());

}  // namespace gainlens::data
