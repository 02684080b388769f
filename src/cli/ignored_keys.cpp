#include "cli/ignored_keys.h"

#include "core/check.h"

namespace gainlens::cli {

void add_ignored_keys(CLI::App& command, std::vector<std::string>& keys) {
  command
      .add_option("--ignore-config-key", keys,
                  "Do not read this key of config.json, for example logit_scale or rope_scaling.attn_factor: for keys "
                  "that gainlens refuses and that you know to change nothing. May be repeated")
      ->type_name("NAME")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

void refuse_ignored_keys(const std::vector<std::string>& keys, std::string_view what) {
  CHECK(keys.empty(), "--ignore-config-key: is for the checkpoint of a decoder; this is {}", what);
}

}  // namespace gainlens::cli
