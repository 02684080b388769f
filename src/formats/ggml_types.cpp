#include "formats/ggml_types.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace gainlens::formats {
namespace {

/// One type of ggml's list. Missing numbers were given up or never used.
struct Row {
  std::uint32_t number;
  std::string_view name;
  std::optional<DType> dtype;
};

constexpr std::array table{
    Row{0, "F32", DType::f32},
    Row{1, "F16", DType::f16},
    Row{2, "Q4_0", DType::q4_0},
    Row{3, "Q4_1", DType::q4_1},
    Row{6, "Q5_0", DType::q5_0},
    Row{7, "Q5_1", DType::q5_1},
    Row{8, "Q8_0", DType::q8_0},
    Row{9, "Q8_1", {}},
    Row{10, "Q2_K", DType::q2_k},
    Row{11, "Q3_K", DType::q3_k},
    Row{12, "Q4_K", DType::q4_k},
    Row{13, "Q5_K", DType::q5_k},
    Row{14, "Q6_K", DType::q6_k},
    Row{15, "Q8_K", {}},
    Row{16, "IQ2_XXS", {}},
    Row{17, "IQ2_XS", {}},
    Row{18, "IQ3_XXS", {}},
    Row{19, "IQ1_S", {}},
    Row{20, "IQ4_NL", DType::iq4_nl},
    Row{21, "IQ3_S", {}},
    Row{22, "IQ2_S", {}},
    Row{23, "IQ4_XS", DType::iq4_xs},
    Row{24, "I8", {}},
    Row{25, "I16", {}},
    Row{26, "I32", {}},
    Row{27, "I64", {}},
    Row{28, "F64", {}},
    Row{29, "IQ1_M", {}},
    Row{30, "BF16", DType::bf16},
    Row{34, "TQ1_0", {}},
    Row{35, "TQ2_0", {}},
    Row{39, "MXFP4", DType::mxfp4},
    Row{40, "NVFP4", {}},
    Row{41, "Q1_0", {}},
};

const Row* find(std::uint32_t number) {
  const auto row = std::find_if(table.begin(), table.end(), [&](const Row& r) { return r.number == number; });
  return row == table.end() ? nullptr : &*row;
}

}  // namespace

std::optional<DType> dtype_of_ggml(std::uint32_t number) {
  const Row* row = find(number);
  return row == nullptr ? std::nullopt : row->dtype;
}

std::string ggml_type_name(std::uint32_t number) {
  const Row* row = find(number);
  return row == nullptr ? fmt::format("type {}", number) : fmt::format("{} (type {})", row->name, number);
}

std::string allowed_ggml_types() {
  std::string names;
  for (const Row& row : table) {
    if (!row.dtype.has_value()) continue;
    if (!names.empty()) names += ", ";
    names += row.name;
  }
  return names;
}

}  // namespace gainlens::formats
