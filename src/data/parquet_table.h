#pragma once

// What the program and the module that reads Parquet know of each other. The module (parquet_module.cpp) is a shared
// library of its own. Only it is linked with Arrow, whose two libraries (60 MB) take longer to load than a short
// command takes. So the program loads it when it meets a Parquet file. Both are compiled in one build. No function here
// throws: an exception of Arrow stays in the module and becomes error().

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gainlens::data {

/// A top-level column of a Parquet file.
struct ParquetColumn {
  enum class Holds {
    texts,
    wholes,   ///< integers of up to 64 bits, with or without sign
    reals,    ///< 32 or 64 bits
    moments,  ///< dates, and timestamps of any unit
    others    ///< nested values, truth values, decimals and so on, which are not read
  };
  std::string name;  ///< not trusted
  Holds holds = Holds::others;
  std::string type;  ///< in Parquet's words, for messages; not trusted
};

/// A value of one row.
struct ParquetValue {
  bool missing = true;    ///< null
  std::string_view text;  ///< of texts; of wholes the decimal digits. Valid until the next row is read
  double number = 0;      ///< of wholes (rounded) and reals; of moments the seconds since 1970 (UTC)
  bool too_fine = false;  ///< a moment between two microseconds, which `number` cannot tell from its neighbours
};

/// What a file may ask for. Few bytes can claim much: a page of 2 GiB, or 2^31 times the same row.
struct ParquetLimits {
  std::int64_t memory = 0;  ///< bytes of all pages, dictionaries and buffers that are held at one time
  std::int64_t rows = 0;
};

/// An open file.
class ParquetTable {
 public:
  enum class Step { row, end, failed };

  ParquetTable() = default;
  virtual ~ParquetTable() = default;
  ParquetTable(const ParquetTable&) = delete;
  ParquetTable& operator=(const ParquetTable&) = delete;

  virtual const std::vector<ParquetColumn>& columns() const noexcept = 0;
  /// Says which columns are read. Called once, before next().
  /// @param places  in columns(); none of `others`
  virtual void choose(std::vector<std::size_t> places) noexcept = 0;
  /// Reads the next row. Holds one page of each chosen column in memory.
  /// @param values  [chosen column]; replaced
  virtual Step next(std::vector<ParquetValue>& values) noexcept = 0;
  /// Why a step failed; not trusted.
  virtual const std::string& error() const noexcept = 0;
};

/// The function that the module exports. The number goes up with every change of this header: a module of an older
/// build is then not taken for this one.
inline constexpr const char* open_parquet_symbol = "gainlens_open_parquet_2";
/// @param error  replaced by the reason if the file cannot be opened; not trusted
/// @returns  null if the file cannot be opened; the caller deletes the table
using OpenParquet = ParquetTable* (*)(const char* path, const ParquetLimits* limits, std::string* error);

}  // namespace gainlens::data
