#pragma once

#include "bench/attention_case.h"

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace gainlens::bench {

/// What is measured. The names are those in JSON.
namespace method {
inline constexpr std::string_view sdpa = "sdpa";  ///< libtorch's SDPA, the floor that methods are compared with
/// Ours: output, n_eff, entropy, bos_mass, S, lambda_obs, K.
inline constexpr std::string_view statistics = "statistics";
inline constexpr std::string_view all_fields = "all_fields";  ///< ours: all fields of the default ReturnedFields
inline constexpr std::string_view large_keys = "large_keys";  ///< all fields, and key means of at least 0.1
inline constexpr std::string_view all_keys = "all_keys";      ///< all fields, and all key means
inline constexpr std::string_view composed = "composed";      ///< ours from library calls, the fields of `statistics`
/// A T x T tensor for each head, the fields of `statistics`.
inline constexpr std::string_view materialised = "materialised";
inline constexpr std::string_view matrix_product = "matrix_product";  ///< no attention: the rate of a large product
}  // namespace method

/// All methods, in the order in which they run and stand in tables.
inline constexpr std::string_view all_methods[] = {method::sdpa,         method::statistics,    method::all_fields,
                                                   method::large_keys,   method::all_keys,      method::composed,
                                                   method::materialised, method::matrix_product};

/// A method's name in tables and figures.
std::string method_label(std::string_view name);

/// One way to compute a case. It can be run repeatedly.
struct Method {
  std::string name;
  double operations = 0;        ///< floating-point operations of one run (product_operations)
  std::int64_t held_bytes = 0;  ///< memory that stays in use between runs, in addition to the inputs: a mask
  std::function<void()> run;    ///< the first run also allocates the workspace, later ones reuse it
};

struct MethodChoice {
  bool composed = true;
  bool materialised = true;
  bool matrix_product = false;
};

/// The methods on the same inputs, in the order in which they run; SDPA is the first.
std::vector<Method> methods_of(const AttentionCase& shape, const MethodChoice& choice);

}  // namespace gainlens::bench
