#include "models/families/text_config.h"

#include "core/check.h"
#include "models/families/class_names.h"
#include "models/families/other_keys.h"

namespace gainlens::models {
namespace {

/// The BOS stands in text_config, or outside of it, or in both places.
std::optional<std::int64_t> parse_outer_bos(ConfigReader& reader, ConfigReader& text, const DecoderConfig& config) {
  const Json* outer = reader.find_non_null("bos_token_id");
  if (outer == nullptr) return config.bos_token;
  const auto bos = parse_bos(reader, std::nullopt, config.vocabulary);
  CHECK(text.find_non_null("bos_token_id") == nullptr || bos == config.bos_token,
        "{}: 'bos_token_id' is {} and 'text_config.bos_token_id' is {}; they must agree", reader.where(), brief(*outer),
        brief(*text.find("bos_token_id")));
  return bos;
}

}  // namespace

DecoderConfig parse_text_config(ConfigReader& reader, std::string_view family) {
  auto text = reader.object("text_config");
  CHECK(text.has_value(), "{}: no 'text_config'; a {} checkpoint needs it to describe its language model",
        reader.where(), family);
  const Family& text_family = family_named(fmt::format("{}_text", family), reader.where());
  if (text->find_non_null("model_type") != nullptr) {
    const std::string name = text->text("model_type");
    CHECK(name == text_family.name, "{}: 'text_config.model_type' is '{}'; in a {} checkpoint it must be '{}'",
          reader.where(), printable(name, 60), family, text_family.name);
  }
  check_class_names(*text, text_family);
  DecoderConfig config = text_family.parse(*text);
  check_other_keys(*text, config, text_family, !has_own_code(reader));
  for (const std::string& note : text->notes()) reader.note(note);
  config.tied_head = reader.boolean("tie_word_embeddings", config.tied_head);
  config.bos_token = parse_outer_bos(reader, *text, config);
  return config;
}

}  // namespace gainlens::models
