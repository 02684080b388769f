#include "formats/dtype.h"

#include "core/check.h"

#include <algorithm>
#include <array>

namespace gainlens::formats {
namespace {

struct Row {
  DType dtype;
  std::string_view name;
  std::size_t block_elements;
  std::size_t block_bytes;
};

constexpr std::array table{
    Row{DType::f64, "F64", 1, 8},
    Row{DType::f32, "F32", 1, 4},
    Row{DType::f16, "F16", 1, 2},
    Row{DType::bf16, "BF16", 1, 2},
    Row{DType::f8_e4m3, "F8_E4M3", 1, 1},
    Row{DType::i64, "I64", 1, 8},
    Row{DType::i32, "I32", 1, 4},
    Row{DType::i16, "I16", 1, 2},
    Row{DType::i8, "I8", 1, 1},
    Row{DType::u8, "U8", 1, 1},
    Row{DType::boolean, "BOOL", 1, 1},
    // Bytes of a block: first those of the scales (and minima), then those of the elements. A scale of 16 bits is a
    // half.
    Row{DType::q8_0, "Q8_0", 32, 2 + 32},
    Row{DType::q4_0, "Q4_0", 32, 2 + 16},
    Row{DType::q4_1, "Q4_1", 32, 4 + 16},
    Row{DType::q5_0, "Q5_0", 32, 2 + 4 + 16},
    Row{DType::q5_1, "Q5_1", 32, 4 + 4 + 16},
    Row{DType::q2_k, "Q2_K", 256, 16 + 4 + 64},
    Row{DType::q3_k, "Q3_K", 256, 12 + 2 + 32 + 64},
    Row{DType::q4_k, "Q4_K", 256, 4 + 12 + 128},
    Row{DType::q5_k, "Q5_K", 256, 4 + 12 + 32 + 128},
    Row{DType::q6_k, "Q6_K", 256, 16 + 2 + 64 + 128},
    Row{DType::iq4_nl, "IQ4_NL", 32, 2 + 16},
    Row{DType::iq4_xs, "IQ4_XS", 256, 2 + 2 + 4 + 128},
    Row{DType::mxfp4, "MXFP4", 32, 1 + 16},
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
  const Row& row = row_of(dtype);
  ASSERT(row.block_elements == 1, "an element of {} has no bytes of its own", row.name);
  return row.block_bytes;
}

std::size_t elements_per_block(DType dtype) {
  return row_of(dtype).block_elements;
}

std::size_t bytes_per_block(DType dtype) {
  return row_of(dtype).block_bytes;
}

std::optional<DType> dtype_named(std::string_view name) {
  const auto row = std::find_if(table.begin(), table.end(), [&](const Row& r) { return r.name == name; });
  if (row == table.end() || row->block_elements > 1) return std::nullopt;
  return row->dtype;
}

std::string allowed_dtypes() {
  std::string names;
  for (const Row& row : table) {
    if (row.block_elements > 1) continue;
    if (!names.empty()) names += ", ";
    names += row.name;
  }
  return names;
}

}  // namespace gainlens::formats
