#include "core/check.h"
#include "core/nearest.h"
#include "data/interactions.h"

#include <array>
#include <charconv>

namespace gainlens::data {

std::string TiePolicy::name() const {
  switch (kind) {
    case Kind::file:
      return "file";
    case Kind::item:
      return "item";
    case Kind::random:
      return fmt::format("random:{}", seed);
  }
  ASSERT(false, "unknown tie policy");
}

TiePolicy parse_tie_policy(std::string_view text) {
  if (text == "file") return {TiePolicy::Kind::file, 0};
  if (text == "item") return {TiePolicy::Kind::item, 0};
  const auto colon = text.find(':');
  const std::string_view kind = text.substr(0, colon);
  static const std::array<std::string, 3> kinds = {"file", "item", "random"};
  CHECK(kind == "random", "--ties: '{}'; must be file, item or random:SEED{}", printable(text, 40),
        did_you_mean(kind, kinds));
  const std::string_view digits = colon == std::string_view::npos ? "" : text.substr(colon + 1);
  TiePolicy policy{TiePolicy::Kind::random, 0};
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), policy.seed);
  CHECK(error == std::errc() && end == digits.data() + digits.size(),
        "--ties: '{}'; the seed must be a whole number from 0 to 2^64 - 1, such as random:1", printable(text, 40));
  return policy;
}

}  // namespace gainlens::data
