#pragma once

#include "bench/attention_case.h"

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace gainlens::bench {

/// What is measured, by the name it has in JSON.
namespace method {
inline constexpr std::string_view sdpa = "sdpa";  ///< libtorch's fused attention: the floor
inline constexpr std::string_view statistics =
    "statistics";  ///< ours: output, n_eff, entropy, bos_mass, S, lambda_obs, K
inline constexpr std::string_view all_fields = "all_fields";  ///< ours: every field that is a number of a query
inline constexpr std::string_view composed = "composed";      ///< ours from library calls, the fields of `statistics`
inline constexpr std::string_view materialised =
    "materialised";  ///< a T x T tensor for each head, the fields of `statistics`
inline constexpr std::string_view matrix_product = "matrix_product";  ///< no attention: the rate of a large product
}  // namespace method

/// In the order in which they take turns and stand in tables.
inline constexpr std::string_view all_methods[] = {method::sdpa,     method::statistics,   method::all_fields,
                                                   method::composed, method::materialised, method::matrix_product};

/// A method's name in tables and figures.
std::string method_label(std::string_view name);

/// One way to compute a case, ready to run again and again.
struct Method {
  std::string name;
  double operations = 0;        ///< floating-point operations of one run (product_operations)
  std::int64_t held_bytes = 0;  ///< what has to lie in memory beside inputs and run: a mask
  std::function<void()> run;    ///< the first run also allocates the workspace, later ones reuse it
};

struct MethodChoice {
  bool composed = true;
  bool materialised = true;
  bool matrix_product = false;
};

/// The methods over the same inputs, in the order in which they take turns; SDPA first.
std::vector<Method> methods_of(const AttentionCase& shape, const MethodChoice& choice);

}  // namespace gainlens::bench
