#include "reports/page/token_strip.h"

#include "core/check.h"
#include "reports/page/embedded_data.h"

namespace gainlens::reports {

std::string token_strip(const TokenStrip& strip) {
  const std::size_t kept = strip.layers.size() * strip.heads * strip.tokens.size() * strip.top;
  ASSERT(kept > 0 && strip.keys.size() == kept && strip.weights.size() == kept,
         "a strip of {} layers, {} heads, {} tokens and {} keys of each has {} keys and {} weights",
         strip.layers.size(), strip.heads, strip.tokens.size(), strip.top, strip.keys.size(), strip.weights.size());
  for (const double key : strip.keys)
    ASSERT(key >= -1 && key < static_cast<double>(strip.tokens.size()), "key {} of {} tokens", key,
           strip.tokens.size());
  const std::size_t query = strip.query.value_or(strip.tokens.size() - 1);
  ASSERT(strip.layer < strip.layers.size() && strip.head < strip.heads && query < strip.tokens.size(),
         "the strip begins with head {} of layer place {} at query {}, which it does not have", strip.head, strip.layer,
         query);
  EmbeddedData data;
  data.words = {{"tokens", strip.tokens}, {"layers", strip.layers},       {"heads", strip.heads},
                {"top", strip.top},       {"keys", data.add(strip.keys)}, {"weights", data.add(strip.weights)},
                {"layer", strip.layer},   {"head", strip.head},           {"query", query}};
  return embedded_part("tokens", data);
}

}  // namespace gainlens::reports
