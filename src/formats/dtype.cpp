#include "formats/dtype.h"

#include "core/error.h"

#include <algorithm>
#include <array>

namespace gainlens::formats {
namespace {

struct Row {
  DType dtype;
  std::string_view name;
  std::size_t bytes;
};

constexpr std::array table{
    Row{DType::f64, "F64", 8}, Row{DType::f32, "F32", 4},      Row{DType::f16, "F16", 2}, Row{DType::bf16, "BF16", 2},
    Row{DType::i64, "I64", 8}, Row{DType::i32, "I32", 4},      Row{DType::i16, "I16", 2}, Row{DType::i8, "I8", 1},
    Row{DType::u8, "U8", 1},   Row{DType::boolean, "BOOL", 1},
};

const Row& row_of(DType dtype) {
  const auto row = std::find_if(table.begin(), table.end(), [&](const Row& r) { return r.dtype == dtype; });
  ASSERT(row != table.end(), "no element type has the number {}", static_cast<int>(dtype));
  return *row;
}

}  // namespace

std::string_view name_of(DType dtype) {
  return row_of(dtype).name;
}

std::size_t bytes_per_element(DType dtype) {
  return row_of(dtype).bytes;
}

std::optional<DType> dtype_named(std::string_view name) {
  const auto row = std::find_if(table.begin(), table.end(), [&](const Row& r) { return r.name == name; });
  if (row == table.end()) return std::nullopt;
  return row->dtype;
}

std::string allowed_dtypes() {
  std::string names;
  for (const Row& row : table) {
    if (!names.empty()) names += ", ";
    names += row.name;
  }
  return names;
}

}  // namespace gainlens::formats
