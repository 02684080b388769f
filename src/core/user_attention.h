#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <vector>

// What the attention of a recommender rests on when it ranks for a user: one number for each head, at the position that
// ranks. docs/analyses/user-attention.md

namespace gainlens {

/// A number of a head and a user.
struct AttentionNumber {
  std::string_view name;   ///< of its dataset
  std::string_view label;  ///< in tables and figures, with the symbols of reports/page/typography.h
  std::string_view unit, meaning;
  double least = 0, most = 1;
  bool always = true;  ///< false: models without the part that it describes have NaN
};

inline constexpr double no_bound = std::numeric_limits<double>::infinity();

/// THE list: from it come what is measured, the datasets of run.h5 and the tables of the report.
inline constexpr std::array attention_numbers = {
    AttentionNumber{"n_eff", "n_eff", "keys", "Kish effective number of keys", 1, no_bound},
    AttentionNumber{"n_eff_share", "n_eff / keys", "1", "n_eff divided by the number of keys that the position sees"},
    AttentionNumber{"kalman_gain", "K", "1", "Kalman gain at prior precision 1, from the REML observation precision"},
    AttentionNumber{"model_gain", "K of the model", "1",
                    "factor that the model itself puts on what the head found, mean over dimensions; NaN: it has none",
                    0, 1, false},
    AttentionNumber{"entropy", "entropy", "nats", "entropy of the attention weights", 0, no_bound},
    AttentionNumber{"first_mass", "mass of the first item", "1", "weight of the first item that the model sees"},
    AttentionNumber{"last_mass", "mass of the last item", "1", "weight of the last item of the history"},
    AttentionNumber{"mask_mass", "mass of MASK", "1",
                    "weight of the token MASK, which ranks; NaN: the model has none, and its last item ranks", 0, 1,
                    false},
};

/// The number of this name in the list.
constexpr const AttentionNumber& attention_number(std::string_view name) {
  return *std::ranges::find(attention_numbers, name, &AttentionNumber::name);
}

/// Those numbers of one model.
struct UserAttention {
  std::int64_t users = 0, layers = 0, heads = 0;
  std::map<std::string, std::vector<double>, std::less<>> numbers;  ///< by name, [user, layer, head]

  double at(std::string_view name, std::int64_t user, std::int64_t layer, std::int64_t head) const {
    return numbers.find(name)->second[static_cast<std::size_t>((user * layers + layer) * heads + head)];
  }
};

}  // namespace gainlens
