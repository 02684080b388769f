#include "bench/attention_case.h"

#include "core/check.h"
#include "core/checked.h"
#include "core/nearest.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <vector>

namespace gainlens::bench {
namespace {

const std::vector<std::string> dtype_names = {"float64", "float32", "bfloat16", "float16"};
constexpr at::ScalarType dtypes[] = {at::kDouble, at::kFloat, at::kBFloat16, at::kHalf};

}  // namespace

std::string dtype_name(at::ScalarType type) {
  const auto found = std::find(std::begin(dtypes), std::end(dtypes), type);
  ASSERT(found != std::end(dtypes), "no name for {}", at::toString(type));
  return dtype_names[static_cast<std::size_t>(found - std::begin(dtypes))];
}

at::ScalarType dtype_named(std::string_view name) {
  const auto found = std::find(dtype_names.begin(), dtype_names.end(), name);
  CHECK(found != dtype_names.end(), "--dtype: '{}'; must be float64, float32, bfloat16 or float16{}",
        printable(name, 40), did_you_mean(name, dtype_names));
  return dtypes[found - dtype_names.begin()];
}

void check_case(const AttentionCase& shape) {
  CHECK(shape.heads % shape.kv_heads == 0, "--kv-heads: {} does not divide the {} query heads (--heads)",
        shape.kv_heads, shape.heads);
  CHECK(shape.head_dim >= 16 && shape.head_dim <= 256 && shape.head_dim % 8 == 0,
        "--head-dims: {}; must be a multiple of 8 from 16 to 256", shape.head_dim);
  constexpr std::int64_t longest = 1 << 20, max_heads = 1 << 12;
  CHECK(shape.length <= longest, "--lengths: {}; must be at most {}", shape.length, longest);
  CHECK(shape.heads <= max_heads, "--heads: {}; must be at most {}", shape.heads, max_heads);
}

double visible_pairs(const AttentionCase& shape) {
  const auto length = static_cast<double>(shape.length);
  const double all = length * (length + 1) / 2;
  if (!shape.window || *shape.window >= shape.length) return all;
  const double hidden = length - static_cast<double>(*shape.window);  // keys that the last query does not see
  return all - hidden * (hidden + 1) / 2;
}

double product_operations(const AttentionCase& shape, int products) {
  return 2.0 * products * static_cast<double>(shape.heads * shape.head_dim) * visible_pairs(shape);
}

double min_traffic(const AttentionCase& shape) {
  const std::int64_t rows = 2 * (shape.heads + shape.kv_heads) * shape.length;
  return static_cast<double>(rows * shape.head_dim) * static_cast<double>(at::elementSize(shape.dtype));
}

AttentionInputs random_inputs(const AttentionCase& shape) {
  at::Generator generator = at::detail::createCPUGenerator(1);
  const auto tensor = [&](std::int64_t heads) {
    return at::randn({heads, shape.length, shape.head_dim}, generator, at::TensorOptions(at::kFloat)).to(shape.dtype);
  };
  AttentionInputs in;
  in.query = tensor(shape.heads);
  in.key = tensor(shape.kv_heads);
  in.value = tensor(shape.kv_heads);
  return in;
}

}  // namespace gainlens::bench
