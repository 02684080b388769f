#include "data/parquet_interactions.h"

#include "core/available_memory.h"
#include "core/check.h"
#include "data/parquet_table.h"

#include <dlfcn.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <memory>
#include <system_error>

namespace gainlens::data {
namespace {

namespace fs = std::filesystem;

using Holds = ParquetColumn::Holds;

constexpr const char* how_to_convert =
    "convert the file to CSV, for example with Python: pandas.read_parquet('FILE').to_csv('FILE.csv', index=False)";

/// The first four bytes of a regular file.
std::string magic_of(const fs::path& path) {
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored)) return "";
  std::string magic(4, '\0');
  std::ifstream(path, std::ios::binary).read(magic.data(), static_cast<std::streamsize>(magic.size()));
  return magic;
}

OpenParquet load(const std::optional<fs::path>& module, std::string_view where) {
  CHECK(module,
        "{}: a Parquet file, and this gainlens was built without Arrow, which reads them; install pyarrow with "
        "scripts/build, or {}",
        where, how_to_convert);
  // RTLD_LOCAL: libtorch and Arrow contain different versions of the same libraries.
  void* const handle = ::dlopen(module->c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* const reason = ::dlerror();
    throw_invalid("{}: a Parquet file, and the module that reads them cannot be loaded ({}); call scripts/build, or {}",
                  where, printable(reason == nullptr ? "unknown reason" : reason, 300), how_to_convert);
  }
  void* const found = ::dlsym(handle, open_parquet_symbol);
  CHECK(found != nullptr, "{}: a Parquet file, and {} is of another build of gainlens; install both again, or {}",
        where, printable(module->string()), how_to_convert);
  return reinterpret_cast<OpenParquet>(found);
}

/// Bounds what a file can claim by its size, as the chunks of a run are bounded (runfile/hdf5.cpp): few bytes of a
/// damaged or hostile file would otherwise fill the memory.
ParquetLimits limits_of(const fs::path& path, std::string_view where) {
  constexpr std::uint64_t max_packing = 1032;                            // of deflate
  constexpr std::uint64_t never_too_large = std::uint64_t{256} << 20;    // usual pages hold 1 MiB
  constexpr std::uint64_t never_too_many_rows = std::uint64_t{1} << 24;  // 400 MB as interactions
  std::error_code error;
  const std::uint64_t size = fs::file_size(path, error);
  CHECK(!error, "{}: cannot be read: {}", where, error.message());
  const std::uint64_t claimed = max_packing * std::min(size, std::uint64_t{1} << 50);
  const std::uint64_t wanted = std::max(claimed, never_too_large);
  const std::uint64_t memory = std::min(wanted, available_memory().value_or(wanted));
  return {.memory = static_cast<std::int64_t>(memory),
          .rows = static_cast<std::int64_t>(std::max(claimed, never_too_many_rows))};
}

/// A real number that is the name of a user or an item: nothing if it is not whole or may have been rounded.
std::optional<std::string> name_of(double number) {
  if (!time_fits(number) || number != std::trunc(number)) return std::nullopt;
  return std::to_string(static_cast<std::int64_t>(number));
}

class ParquetReader {
 public:
  ParquetReader(const fs::path& path, const ColumnOptions& options, OpenParquet open)
      : where_(printable(path.string())) {
    std::string reason;
    const ParquetLimits limits = limits_of(path, where_);
    table_.reset(open(path.c_str(), &limits, &reason));
    if (table_ == nullptr) refuse(reason);
    std::vector<std::string> names;
    for (const ParquetColumn& column : table_->columns()) names.push_back(column.name);
    const ColumnPlaces places = find_columns(names, options, parquet_columns, where_);
    result_.format = InteractionFormat::parquet;
    result_.timed = places.time.has_value();
    result_.columns =
        ReadColumns{.user = names[places.user], .item = names[places.item], .time = {}, .delimiter = {}, .quotes = {}};
    user_ = named(places.user, "users", "--user-column");
    item_ = named(places.item, "items", "--item-column");
    std::vector<std::size_t> chosen = {places.user, places.item};
    if (places.time) {
      time_ = timed(*places.time);
      result_.columns->time = names[*places.time];
      result_.columns->dates = time_ == Holds::moments;
      chosen.push_back(*places.time);
    }
    table_->choose(chosen);
  }

  RawInteractions read() && {
    Faults faults(result_.unit());
    std::vector<ParquetValue> values;
    std::int64_t row = 0;
    for (;;) {
      const ParquetTable::Step step = table_->next(values);
      if (step == ParquetTable::Step::failed) refuse(table_->error());
      if (step == ParquetTable::Step::end) break;
      const std::string fault = add(values, ++row);
      if (!fault.empty()) faults.add(row, fault);
      result_.make_room(where_, row);
    }
    CHECK(row > 0, "{}: no interactions, the table has no rows; give a data set", where_);
    faults.raise(where_, fmt::format("each row has a user, an item{}", result_.timed ? " and a time" : ""));
    return std::move(result_);
  }

 private:
  [[noreturn]] void refuse(const std::string& reason) const {
    throw_invalid("{}: not a Parquet file that can be read: {}; it may be truncated or broken, give it anew or {}",
                  where_, printable(reason, 300), how_to_convert);
  }

  Holds named(std::size_t place, std::string_view what, std::string_view option) const {
    const ParquetColumn& column = table_->columns()[place];
    CHECK(column.holds != Holds::others && column.holds != Holds::moments,
          "{}: the column '{}' is of type {}, which cannot hold {} ({}); they are texts or whole numbers", where_,
          printable(column.name, 60), printable(column.type, 80), what, option);
    return column.holds;
  }

  Holds timed(std::size_t place) const {
    const ParquetColumn& column = table_->columns()[place];
    CHECK(column.holds != Holds::others,
          "{}: the column '{}' is of type {}, which cannot hold times (--time-column); they are numbers, dates, "
          "timestamps, or texts with numbers or dates of ISO 8601",
          where_, printable(column.name, 60), printable(column.type, 80));
    return column.holds;
  }

  /// @param names  [0] of the user or [1] of the item: kept until the interaction is added
  static std::string name(const ParquetValue& value, Holds holds, std::string_view what, std::string& kept,
                          std::string_view& name) {
    if (value.missing) return fmt::format("has no {} (null)", what);
    name = value.text;
    if (holds != Holds::reals) return "";
    auto whole = name_of(value.number);
    if (!whole) return fmt::format("has the {} {}, which is not a whole number below 2^53", what, value.number);
    kept = std::move(*whole);
    name = kept;
    return "";
  }

  std::string time(const ParquetValue& value, std::int64_t row, double& time) {
    if (value.missing) return "has no time (null)";
    if (value.too_fine) {
      return "has a time that is no whole number of microseconds, and seconds are not kept more finely; cast the "
             "column "
             "to timestamp[us]";
    }
    if (time_ != Holds::texts) return times_.read(value.number, row, time);
    std::string fault = times_.read(value.text, row, time);
    result_.columns->dates = times_.dates();
    return fault;
  }

  /// @returns  as RawInteractions::add()
  std::string add(const std::vector<ParquetValue>& values, std::int64_t row) {
    std::string_view user, item;
    std::string fault = name(values[0], user_, "user", kept_[0], user);
    if (fault.empty()) fault = name(values[1], item_, "item", kept_[1], item);
    double moment = 0;
    if (fault.empty() && result_.timed) fault = time(values[2], row, moment);
    return fault.empty() ? result_.add(user, item, moment, row) : fault;
  }

  std::string where_;
  std::unique_ptr<ParquetTable> table_;
  Holds user_{}, item_{}, time_{};
  TimeColumn times_{unit_of(InteractionFormat::parquet)};
  std::array<std::string, 2> kept_;
  RawInteractions result_;
};

}  // namespace

bool is_parquet(const fs::path& path) {
  const std::string magic = magic_of(path);
  return magic == "PAR1" || magic == "PARE";
}

std::optional<fs::path> parquet_module() {
  std::error_code ignored;
  const fs::path program = fs::read_symlink("/proc/self/exe", ignored);
  for (const fs::path& place : {program.parent_path() / GAINLENS_PARQUET_INSTALLED, fs::path(GAINLENS_PARQUET_BUILT)}) {
    if (fs::is_regular_file(place, ignored)) return place.lexically_normal();
  }
  return std::nullopt;
}

RawInteractions read_parquet_interactions(const fs::path& path, const ColumnOptions& options,
                                          const std::optional<fs::path>& module) {
  const std::string where = printable(path.string());
  CHECK(magic_of(path) != "PARE", "{}: an encrypted Parquet file; decrypt it first", where);
  CHECK(!options.delimiter, "{}: --delimiter is for tables of text, and this is a Parquet file; leave it out", where);
  CHECK(!options.quotes, "{}: --quotes is for tables of text, and this is a Parquet file; leave it out", where);
  CHECK(options.header, "{}: --no-header is for tables of text, and this is a Parquet file; leave it out", where);
  return ParquetReader(path, options, load(module, where)).read();
}

}  // namespace gainlens::data
