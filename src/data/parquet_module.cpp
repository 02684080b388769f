// The module gainlens-parquet.so: a Parquet file as rows of values (parquet_table.h). It uses the lower one of Arrow's
// two interfaces, which has the types of the format itself and reads page by page.
#include "data/parquet_table.h"

#include <arrow/memory_pool.h>
#include <parquet/column_reader.h>
#include <parquet/exception.h>
#include <parquet/file_reader.h>
#include <parquet/metadata.h>
#include <parquet/schema.h>
#include <parquet/types.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <exception>
#include <memory>
#include <new>
#include <stdexcept>
#include <utility>

namespace gainlens::data {
namespace {

using parquet::LogicalType;
using Holds = ParquetColumn::Holds;

constexpr std::int64_t rows_at_once = 4096;
constexpr std::int64_t seconds_of_day = 86400;
constexpr std::int64_t nanoseconds = 1'000'000'000;

[[noreturn]] void fail(const std::string& reason) {
  throw std::runtime_error(reason);
}

/// Takes a text off the begin of another.
bool drop_start(std::string& text, std::string_view start) {
  const bool found = text.starts_with(start);
  if (found) text.erase(0, start.size());
  return found;
}

/// Why the exception that is being handled was thrown, in one line.
std::string reason_of_current_exception(const ParquetLimits& limits) {
  std::string reason = "unknown failure";
  try {
    throw;
  } catch (const std::bad_alloc&) {
    reason = "Out of memory";
  } catch (const std::exception& error) {
    reason = error.what();
  }
  // Arrow's own limit of memory is one of its states, which some of its exceptions hold as text alone.
  if (reason.find("Out of memory") != std::string::npos) {
    return "it asks for more than " + std::to_string(limits.memory >> 20) +
           " MiB of memory, which its size does not explain or the machine does not have";
  }
  while (reason.ends_with('\n')) reason.pop_back();
  std::replace(reason.begin(), reason.end(), '\n', ' ');
  if (drop_start(reason, "Couldn't deserialize thrift: ")) {
    drop_start(reason, "TProtocolException: ");
    reason = "its metadata: " + reason;
  }
  return reason;
}

/// Seconds of a number of units. Whole minutes and the seconds behind them are added as those of a date of ISO 8601 are
/// (time_text.cpp), so that both give the same bits.
double seconds_of(std::int64_t units, std::int64_t units_of_second) {
  const std::int64_t minute = 60 * units_of_second;
  std::int64_t minutes = units / minute, behind = units % minute;
  if (behind < 0) behind += minute, --minutes;
  return static_cast<double>(60 * minutes) + static_cast<double>(behind) / static_cast<double>(units_of_second);
}

/// How the values of a column become a ParquetValue.
struct Meaning {
  Holds holds = Holds::others;
  bool is_signed = true;
  std::int64_t units_of_second = 0;  ///< of a timestamp; 0: the values are days
};

Holds holds_of_plain(parquet::Type::type type) {
  switch (type) {
    case parquet::Type::INT32:
    case parquet::Type::INT64:
      return Holds::wholes;
    case parquet::Type::FLOAT:
    case parquet::Type::DOUBLE:
      return Holds::reals;
    case parquet::Type::BYTE_ARRAY:  // some programs write texts without saying that they are texts
      return Holds::texts;
    case parquet::Type::INT96:
      return Holds::moments;
    default:
      return Holds::others;
  }
}

Meaning meaning_of(const parquet::ColumnDescriptor& column) {
  const LogicalType& type = *column.logical_type();
  if (type.is_none()) return {.holds = holds_of_plain(column.physical_type())};
  if (type.is_string() || type.is_enum()) return {.holds = Holds::texts};
  if (type.is_int()) {
    return {.holds = Holds::wholes, .is_signed = static_cast<const parquet::IntLogicalType&>(type).is_signed()};
  }
  if (type.is_date()) return {.holds = Holds::moments};
  if (!type.is_timestamp()) return {};
  switch (static_cast<const parquet::TimestampLogicalType&>(type).time_unit()) {
    case LogicalType::TimeUnit::MILLIS:
      return {.holds = Holds::moments, .units_of_second = 1'000};
    case LogicalType::TimeUnit::MICROS:
      return {.holds = Holds::moments, .units_of_second = 1'000'000};
    case LogicalType::TimeUnit::NANOS:
      return {.holds = Holds::moments, .units_of_second = nanoseconds};
    default:
      return {};
  }
}

std::string type_of(const parquet::ColumnDescriptor& column) {
  const LogicalType& type = *column.logical_type();
  return type.is_none() ? parquet::TypeToString(column.physical_type()) : type.ToString();
}

/// The values of one column of one row group, one after another.
class Cursor {
 public:
  Cursor() = default;
  virtual ~Cursor() = default;
  Cursor(const Cursor&) = delete;
  Cursor& operator=(const Cursor&) = delete;
  /// @returns  false at the end
  virtual bool next(ParquetValue& value) = 0;
};

template <typename Physical>
class CursorOf : public Cursor {
 public:
  using Value = typename Physical::c_type;

  CursorOf(std::shared_ptr<parquet::ColumnReader> reader, const Meaning& meaning)
      : reader_(std::move(reader)),
        typed_(static_cast<parquet::TypedColumnReader<Physical>&>(*reader_)),
        nullable_(reader_->descr()->max_definition_level() > 0),
        meaning_(meaning),
        levels_(rows_at_once),
        values_(rows_at_once) {}

  bool next(ParquetValue& value) override {
    if (row_ == rows_ && !read_rows()) return false;
    value = {};
    const bool there = !nullable_ || levels_[static_cast<std::size_t>(row_)] != 0;
    ++row_;
    if (!there) return true;
    if (value_ == count_) fail("a page has fewer values than it says");
    value.missing = false;
    convert(values_[static_cast<std::size_t>(value_++)], value);
    return true;
  }

 private:
  bool read_rows() {
    if (value_ != count_) fail("a page has more values than it says");
    if (!reader_->HasNext()) return false;
    row_ = value_ = 0;
    // Texts point into the page, which stays until the next call.
    rows_ = typed_.ReadBatch(rows_at_once, levels_.data(), nullptr, values_.data(), &count_);
    if (rows_ <= 0) fail("a page has fewer rows than it says");
    if (!nullable_ && count_ != rows_) fail("a page has fewer values than it says");
    return true;
  }

  void convert(const Value& found, ParquetValue& value) {
    if constexpr (std::is_same_v<Value, parquet::ByteArray>) {
      value.text = {reinterpret_cast<const char*>(found.ptr), found.len};
    } else if constexpr (std::is_same_v<Value, parquet::Int96>) {
      constexpr std::int64_t day_of_1970 = 2440588;  // days are counted from 4713 BC
      const std::uint64_t time_of_day = found.value[0] | (static_cast<std::uint64_t>(found.value[1]) << 32);
      if (time_of_day >= static_cast<std::uint64_t>(seconds_of_day * nanoseconds)) fail("a time of day does not exist");
      const std::int64_t midnight = (static_cast<std::int64_t>(found.value[2]) - day_of_1970) * seconds_of_day;
      const auto minutes = static_cast<std::int64_t>(time_of_day) / (60 * nanoseconds);
      value.number = static_cast<double>(midnight + 60 * minutes) +
                     seconds_of(static_cast<std::int64_t>(time_of_day) % (60 * nanoseconds), nanoseconds);
      value.too_fine = time_of_day % 1000 != 0;
    } else if constexpr (std::is_floating_point_v<Value>) {
      value.number = static_cast<double>(found);
    } else {
      convert_whole(found, value);
    }
  }

  void convert_whole(Value found, ParquetValue& value) {
    if (meaning_.holds == Holds::moments) {
      value.number = meaning_.units_of_second == 0
                         ? static_cast<double>(static_cast<std::int64_t>(found) * seconds_of_day)
                         : seconds_of(found, meaning_.units_of_second);
      value.too_fine = meaning_.units_of_second == nanoseconds && found % 1000 != 0;
    } else if (meaning_.is_signed) {
      put_digits(found, value);
    } else {
      put_digits(static_cast<std::make_unsigned_t<Value>>(found), value);
    }
  }

  template <typename Whole>
  void put_digits(Whole whole, ParquetValue& value) {
    const auto end = std::to_chars(digits_.data(), digits_.data() + digits_.size(), whole).ptr;
    value.text = {digits_.data(), static_cast<std::size_t>(end - digits_.data())};
    value.number = static_cast<double>(whole);
  }

  std::shared_ptr<parquet::ColumnReader> reader_;
  parquet::TypedColumnReader<Physical>& typed_;
  bool nullable_;
  Meaning meaning_;
  std::vector<std::int16_t> levels_;  ///< [row] 0: null
  std::vector<Value> values_;         ///< of the rows that are not null
  std::int64_t row_ = 0, rows_ = 0, value_ = 0, count_ = 0;
  std::array<char, 24> digits_{};
};

std::unique_ptr<Cursor> make_cursor(std::shared_ptr<parquet::ColumnReader> reader, const Meaning& meaning) {
  switch (reader->type()) {
    case parquet::Type::INT32:
      return std::make_unique<CursorOf<parquet::Int32Type>>(std::move(reader), meaning);
    case parquet::Type::INT64:
      return std::make_unique<CursorOf<parquet::Int64Type>>(std::move(reader), meaning);
    case parquet::Type::INT96:
      return std::make_unique<CursorOf<parquet::Int96Type>>(std::move(reader), meaning);
    case parquet::Type::FLOAT:
      return std::make_unique<CursorOf<parquet::FloatType>>(std::move(reader), meaning);
    case parquet::Type::DOUBLE:
      return std::make_unique<CursorOf<parquet::DoubleType>>(std::move(reader), meaning);
    case parquet::Type::BYTE_ARRAY:
      return std::make_unique<CursorOf<parquet::ByteArrayType>>(std::move(reader), meaning);
    default:
      fail("a column has a type that is not read");
  }
}

class OpenTable : public ParquetTable {
 public:
  OpenTable(const std::string& path, const ParquetLimits& limits)
      : limits_(limits), pool_(arrow::system_memory_pool(), limits.memory) {
    // The usual allocator, so that limits and measurements of memory see these pages too.
    parquet::ReaderProperties properties(&pool_);
    properties.enable_buffered_stream();
    properties.set_page_checksum_verification(true);
    file_ = parquet::ParquetFileReader::OpenFile(path, /*memory_map=*/false, properties);
    const auto metadata = file_->metadata();
    if (metadata->is_encryption_algorithm_set()) fail("it is encrypted");
    if (metadata->num_rows() > limits.rows) {
      fail("it claims " + std::to_string(metadata->num_rows()) + " rows, and a file of its size may have " +
           std::to_string(limits.rows));
    }
    const parquet::SchemaDescriptor& schema = *metadata->schema();
    const auto& root = *schema.group_node();
    for (int field = 0; field < root.field_count(); ++field) {
      const auto& node = *root.field(field);
      if (node.is_primitive() && !node.is_repeated()) {
        const int leaf = schema.ColumnIndex(node);
        if (leaf < 0) fail("its schema contradicts itself");
        const parquet::ColumnDescriptor& column = *schema.Column(leaf);
        leaves_.push_back(leaf);
        meanings_.push_back(meaning_of(column));
        columns_.push_back({node.name(), meanings_.back().holds, type_of(column)});
      } else {
        const bool plain = node.logical_type()->is_none();
        leaves_.push_back(-1);
        meanings_.emplace_back();
        columns_.push_back(
            {node.name(), Holds::others, plain ? "nested" : "nested: " + node.logical_type()->ToString()});
      }
    }
  }

  const std::vector<ParquetColumn>& columns() const noexcept override { return columns_; }
  void choose(std::vector<std::size_t> places) noexcept override { places_ = std::move(places); }
  const std::string& error() const noexcept override { return error_; }

  Step next(std::vector<ParquetValue>& values) noexcept override {
    try {
      while (row_ == rows_) {
        close_group();
        if (group_ == file_->metadata()->num_row_groups()) return end();
        open_group();
      }
      values.resize(cursors_.size());
      for (std::size_t i = 0; i < cursors_.size(); ++i) {
        if (!cursors_[i]->next(values[i])) fail("a column has fewer rows than its row group");
      }
      ++row_;
      return Step::row;
    } catch (...) {
      error_ = reason_of_current_exception(limits_);
    }
    return Step::failed;
  }

 private:
  Step end() {
    if (all_rows_ != file_->metadata()->num_rows()) fail(other_rows);
    return Step::end;
  }

  void close_group() {
    ParquetValue ignored;
    for (const auto& cursor : cursors_) {
      if (cursor->next(ignored)) fail("a column has more rows than its row group");
    }
    cursors_.clear();
  }

  void open_group() {
    const auto group = file_->RowGroup(group_++);
    for (const std::size_t place : places_)
      cursors_.push_back(make_cursor(group->Column(leaves_.at(place)), meanings_.at(place)));
    row_ = 0;
    rows_ = group->metadata()->num_rows();
    if (rows_ < 0) fail("a row group has a negative number of rows");
    if (rows_ > file_->metadata()->num_rows() - all_rows_) fail(other_rows);
    all_rows_ += rows_;
  }

  static constexpr const char* other_rows = "its row groups have another number of rows than the file";

  ParquetLimits limits_;
  arrow::CappedMemoryPool pool_;  ///< lives longer than what it gives memory to
  std::unique_ptr<parquet::ParquetFileReader> file_;
  std::vector<ParquetColumn> columns_;
  std::vector<int> leaves_;        ///< [column] Parquet's number of it; -1: nested
  std::vector<Meaning> meanings_;  ///< [column]
  std::vector<std::size_t> places_;
  std::vector<std::unique_ptr<Cursor>> cursors_;  ///< of the row group that is read
  int group_ = 0;                                 ///< the next one
  std::int64_t row_ = 0, rows_ = 0, all_rows_ = 0;
  std::string error_;
};

}  // namespace
}  // namespace gainlens::data

/// Named by open_parquet_symbol.
extern "C" __attribute__((visibility("default"))) gainlens::data::ParquetTable* gainlens_open_parquet_2(
    const char* path, const gainlens::data::ParquetLimits* limits, std::string* error) {
  try {
    return new gainlens::data::OpenTable(path, *limits);
  } catch (...) {
    *error = gainlens::data::reason_of_current_exception(*limits);
  }
  return nullptr;
}
