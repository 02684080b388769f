#include "analyses/sink_keys.h"

#include "core/check.h"

namespace gainlens::analyses {

std::string_view name_of(TokenClass token_class) {
  switch (token_class) {
    case TokenClass::bos:
      return "BOS";
    case TokenClass::delimiter:
      return "delimiter";
    case TokenClass::newline:
      return "newline";
    case TokenClass::space:
      return "space";
    case TokenClass::digit:
      return "digit";
    case TokenClass::rare:
      return "rare";
    case TokenClass::common:
      return "common";
  }
  ASSERT(false, "class {} of tokens is not one of ours", static_cast<int>(token_class));
}

bool has_sink_keys(const runfile::RunReader& reader) {
  return reader.has("sinks/position");
}

SinkKeys sink_keys(const runfile::RunReader& reader, double threshold) {
  CHECK(threshold >= .1 && threshold <= 1, "--threshold {}: column means from 0.1 to 1 are known", threshold);
  return {threshold,
          true,
          usable_lengths(reader),
          {},
          {},
          {},
          {},
          Cells::of(reader, std::vector<double>(reader.lengths().size() * static_cast<std::size_t>(reader.samples()) *
                                                reader.layers().size() * static_cast<std::size_t>(reader.heads()))),
          0};
}

OrderedJson to_json(const SinkKeys& sinks) {
  return {{"sinks", OrderedJson::array()}, {"threshold", sinks.threshold}};
}

}  // namespace gainlens::analyses
