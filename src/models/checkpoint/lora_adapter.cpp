#include "models/checkpoint/lora_adapter.h"

#include "core/check.h"
#include "core/checked.h"
#include "core/nearest.h"
#include "formats/adapter_folder.h"
#include "models/checkpoint/compute_dtype.h"
#include "models/families/config_reader.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

namespace gainlens::models {
namespace {

constexpr std::uintmax_t max_lora_config_bytes = 16u << 20;
constexpr std::int64_t max_rank = std::int64_t{1} << 20;

/// Keys that cannot change a number once an adapter is trained.
constexpr std::array inert_lora_keys = {"base_model_name_or_path",
                                        "revision",
                                        "task_type",
                                        "auto_mapping",
                                        "inference_mode",
                                        "peft_version",
                                        "exclude_modules",
                                        "layers_pattern",
                                        "lora_dropout",
                                        "fan_in_fan_out",  // the layout of the base is known
                                        "megatron_core",
                                        "qalora_group_size",
                                        "eva_config",
                                        "runtime_config",
                                        "ensure_weight_tying"};

bool is_unset(const Json& value) {
  return value.is_null() || value == Json(false) || ((value.is_array() || value.is_object()) && value.empty());
}

/// Whether a key of rank_pattern or alpha_pattern is a name, and no other regular expression.
bool is_module_name(std::string_view key) {
  if (key.starts_with('^')) key.remove_prefix(1);
  return !key.empty() && std::all_of(key.begin(), key.end(),
                                     [](unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c == '.'; });
}

/// Whether a module is the one that a key of rank_pattern or alpha_pattern means: the end of its name, or after '^' the
/// whole name.
bool is_meant(std::string_view key, std::string_view module) {
  if (key.starts_with('^')) return key.substr(1) == module;
  return module.ends_with(key) && (module.size() == key.size() || module[module.size() - key.size() - 1] == '.');
}

/// rank_pattern or alpha_pattern: numbers of modules that differ from the common one.
class ModuleNumbers {
 public:
  ModuleNumbers(ConfigReader& reader, const std::string& name) : where_(reader.where()), name_(name) {
    std::optional<ConfigReader> object = reader.object(name);
    if (!object) return;
    for (const auto& [key, value] : object->json().items()) {
      const std::string shown = printable(key, 100);
      CHECK(is_module_name(key), "{}: '{}' has the key '{}'; of patterns, only names of modules are read", where_, name,
            shown);
      CHECK(value.is_number() && std::isfinite(value.get<double>()), "{}: '{}' of '{}' is {}; must be a number", where_,
            name, shown, printable(value.dump(), 60));
      numbers_[key] = value.get<double>();
    }
  }
  double of(std::string_view module, double common) const {
    std::optional<double> found;
    for (const auto& [key, value] : numbers_) {
      if (!is_meant(key, module)) continue;
      CHECK(!found || *found == value, "{}: '{}' gives '{}' both {} and {}", where_, name_, module, *found, value);
      found = value;
    }
    return found.value_or(common);
  }

 private:
  std::string where_, name_;
  std::map<std::string, double> numbers_;
};

/// adapter_config.json.
struct LoraConfig {
  double rank, alpha;
  bool stabilised;  // use_rslora
  ModuleNumbers ranks, alphas;
  std::vector<std::string> targets;  // names of modules, or their ends

  /// Whether PEFT would compute with the factors of a module.
  bool takes(std::string_view module) const {
    return std::ranges::any_of(targets, [&](const std::string& target) { return is_meant(target, module); });
  }
  double scale(std::string_view module, std::int64_t rows) const {
    const auto own = static_cast<double>(rows);
    return alphas.of(module, alpha) / (stabilised ? std::sqrt(own) : own);
  }
};

void check_method(ConfigReader& reader) {
  const std::string& where = reader.where();
  const std::string type = reader.text("peft_type");
  CHECK(type == "LORA", "{}: 'peft_type' is {}; of adapters, only LORA is read", where, printable(type, 60));
  CHECK(reader.text("bias", "none") == "none",
        "{}: 'bias' is not none: biases of the base were trained too, which is not read; merge the adapter in PEFT",
        where);
  const auto refuse_set = [&](const char* key, const char* why) {
    const Json* value = reader.find(key);
    CHECK(value == nullptr || is_unset(*value), "{}: '{}' is {}: {}; merge the adapter in PEFT", where, key,
          printable(value->dump(), 60), why);
  };
  refuse_set("use_dora", "DoRA is not read");
  refuse_set("modules_to_save", "whole modules were trained too, which is not read");
  refuse_set("lora_bias", "factors with biases are not read");
  refuse_set("layers_to_transform", "factors of some layers alone are not read");
  refuse_set("target_parameters", "factors of single parameters are not read");
  refuse_set("trainable_token_indices", "rows of the embedding were trained too, which is not read");
  if (const Json* start = reader.find("init_lora_weights")) {
    const bool plain =
        start->is_boolean() || start->is_null() || *start == "gaussian" || *start == "orthogonal" || *start == "eva";
    CHECK(plain, "{}: 'init_lora_weights' is {}: a start that changes the base is not read; merge the adapter in PEFT",
          where, printable(start->dump(), 60));
  }
  const Json* loftq = reader.find("loftq_config");
  CHECK(loftq == nullptr || is_unset(*loftq), "{}: 'loftq_config' is set: its base has other weights; not read", where);
}

/// target_modules. PEFT drops the factors of modules that it does not name, without a word.
std::vector<std::string> read_targets(ConfigReader& reader) {
  const Json* found = reader.find("target_modules");
  const bool names = found != nullptr && found->is_array() && !found->empty() &&
                     std::ranges::all_of(*found, [](const Json& name) { return name.is_string(); });
  CHECK(names, "{}: 'target_modules' must be a list of names of modules, as PEFT writes it; patterns are not read",
        reader.where());
  return found->get<std::vector<std::string>>();
}

LoraConfig read_lora_config(const std::filesystem::path& file) {
  const Json document = read_json_file(file, max_lora_config_bytes);
  ConfigReader reader(document, printable(file.string()));
  check_method(reader);
  for (const char* key : inert_lora_keys) reader.find(key);
  LoraConfig config{.rank = static_cast<double>(reader.integer("r", 1, max_rank)),
                    .alpha = reader.number("lora_alpha", -1e12, 1e12),
                    .stabilised = reader.boolean("use_rslora", false),
                    .ranks = ModuleNumbers(reader, "rank_pattern"),
                    .alphas = ModuleNumbers(reader, "alpha_pattern"),
                    .targets = read_targets(reader)};
  for (const std::string& key : reader.unread()) {
    const Json& value = document.at(key);
    CHECK(is_unset(value), "{}: '{}' is {}; this key is not known, and may change what the adapter computes",
          reader.where(), printable(key, 60), printable(value.dump(), 60));
  }
  return config;
}

/// The stored projections of a model by the names of their modules in PEFT.
class ModuleTable {
 public:
  ModuleTable(const Family& family, const DecoderConfig& config) {
    const TensorNames names = tensor_names(family, config);
    prefixes_ = {names.prefix};
    for (const OtherLayout& layout : family.layouts) prefixes_.push_back(layout.prefix);
    for (TensorSlot& slot : tensor_slots(config, names)) {
      constexpr std::string_view weight = ".weight";
      if (slot.shape.size() != 2 || slot.parts.front().kind != WeightField::Kind::projection) continue;
      std::string_view name = slot.name;
      if (!name.ends_with(weight)) continue;
      name.remove_suffix(weight.size());
      if (name.starts_with(names.prefix)) name.remove_prefix(names.prefix.size());
      slots_.emplace(std::string(name), std::move(slot));
    }
  }
  /// Null: there is none.
  const TensorSlot* find(std::string_view module) const {
    for (const std::string_view prefix : prefixes_) {
      if (!module.starts_with(prefix)) continue;
      const auto found = slots_.find(module.substr(prefix.size()));
      if (found != slots_.end()) return &found->second;
    }
    const auto found = slots_.find(module);  // the head, or keys of a model without its head
    return found == slots_.end() ? nullptr : &found->second;
  }

 private:
  std::vector<std::string_view> prefixes_;
  std::map<std::string, TensorSlot, std::less<>> slots_;
};

struct FactorPair {
  const formats::TensorEntry* down = nullptr;
  const formats::TensorEntry* up = nullptr;
};

/// The factors of a file by module: "model.layers.0.self_attn.q_proj".
std::map<std::string, FactorPair> pairs_of(const formats::TensorFile& file, const std::string& where) {
  constexpr std::string_view start = "base_model.model.", down = ".lora_A.weight", up = ".lora_B.weight";
  std::map<std::string, FactorPair> pairs;
  for (const auto& [name, entry] : file.entries()) {
    const bool is_down = name.ends_with(down), is_up = name.ends_with(up);
    CHECK(name.starts_with(start) && (is_down || is_up),
          "{}: '{}' is no factor of a projection (base_model.model.MODULE.lora_A.weight or .lora_B.weight); merge the "
          "adapter in PEFT",
          where, printable(name, 150));
    CHECK(entry.shape.size() == 2 && stored_compute_dtype(entry.dtype),
          "{}: '{}' is {} [{}]; must be a matrix in F32, "
          "F16, BF16 or F64",
          where, printable(name, 150), formats::name_of(entry.dtype), fmt::join(entry.shape, ", "));
    FactorPair& pair = pairs[name.substr(start.size(), name.size() - start.size() - down.size())];
    (is_down ? pair.down : pair.up) = &entry;
  }
  return pairs;
}

const std::vector<std::pair<std::string, std::string_view>>& target_fields() {
  static const std::vector<std::pair<std::string, std::string_view>> fields = {
      {"q", "query"},       {"k", "key"},     {"v", "value"},      {"o", "output"},
      {"gate", "mlp_gate"}, {"up", "mlp_up"}, {"down", "mlp_down"}};
  return fields;
}

/// The target that names a part; empty if none does.
std::string target_of(const SlotPart& part) {
  for (const auto& [target, field] : target_fields()) {
    if (field == part.field) return target;
  }
  return {};
}

void check_targets(const std::vector<std::string>& targets) {
  for (auto target = targets.begin(); target != targets.end(); ++target) {
    const std::vector<std::string>& known = lora_targets();
    CHECK(std::find(known.begin(), known.end(), *target) != known.end(), "--lora-targets: '{}'; must be one of {}{}",
          printable(*target, 60), fmt::join(known, ", "), did_you_mean(*target, known));
    CHECK(std::find(targets.begin(), target, *target) == target, "--lora-targets: '{}' is given twice", *target);
  }
}

}  // namespace

LoraAdapter open_lora_adapter(const std::filesystem::path& folder, const Family& family, const DecoderConfig& config) {
  LoraAdapter adapter;
  adapter.folder = folder;
  adapter.files = {folder / formats::adapter_config_name, folder / formats::adapter_weights_name};
  const LoraConfig asked = read_lora_config(adapter.files[0]);
  std::error_code error;
  CHECK(std::filesystem::exists(adapter.files[1], error),
        "{}: no {}; gainlens reads adapters in safetensors (PEFT writes them with save_pretrained)",
        printable(folder.string()), formats::adapter_weights_name);
  const auto file = formats::TensorFile::open(adapter.files[1]);
  const std::string where = printable(adapter.files[1].string());
  const ModuleTable modules(family, config);
  for (const auto& [module, pair] : pairs_of(file, where)) {
    const std::string name = printable(module, 150);
    CHECK(pair.down != nullptr && pair.up != nullptr, "{}: '{}' has lora_{} without lora_{}", where, name,
          pair.up == nullptr ? "A" : "B", pair.up == nullptr ? "B" : "A");
    const TensorSlot* slot = modules.find(module);
    CHECK(slot != nullptr,
          "{}: '{}' is no projection of the base, {} (or one that is not computed); the adapter is of another model",
          where, name, family.title);
    CHECK(asked.takes(module), "{}: has factors of '{}', which 'target_modules' of {} does not name", where, name,
          formats::adapter_config_name);
    const std::vector<std::int64_t>&down = pair.down->shape, &up = pair.up->shape;
    CHECK(down[1] == inputs_of(*slot) && up[0] == outputs_of(*slot) && down[0] == up[1],
          "{}: '{}' has A [{}] and B [{}], and the base has {} outputs of {} inputs there: the adapter is of another "
          "model",
          where, name, fmt::join(down, ", "), fmt::join(up, ", "), outputs_of(*slot), inputs_of(*slot));
    CHECK(static_cast<double>(down[0]) == asked.ranks.of(module, asked.rank), "{}: '{}' is of rank {}, and {} says {}",
          where, name, down[0], formats::adapter_config_name, asked.ranks.of(module, asked.rank));
    adapter.factors.push_back({*slot, *pair.down, *pair.up, asked.scale(module, down[0])});
  }
  CHECK(!adapter.factors.empty(), "{}: holds no factors", where);
  std::set<std::string_view> changed;
  for (const LoraFactors& factors : adapter.factors)
    CHECK(changed.insert(factors.slot.name).second, "{}: two names mean '{}'", where, factors.slot.name);
  return adapter;
}

const std::vector<std::string>& lora_targets() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> made;
    for (const auto& target : target_fields()) made.push_back(target.first);
    return made;
  }();
  return names;
}

std::vector<LoraModule> lora_modules(const DecoderConfig& config, const std::vector<std::string>& targets) {
  check_targets(targets);
  CHECK(!config.has_latent(),
        "--lora-rank: this model has latent attention, whose projections q, k and v do not name; adapters are not "
        "trained there");
  const TensorNames names = tensor_names(family_named(config.family, "model"), config);
  const auto asked = [&](const std::string& target) {
    return targets.empty() || std::find(targets.begin(), targets.end(), target) != targets.end();
  };
  std::set<std::string> found;
  std::vector<LoraModule> modules;
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    const std::string at = std::string(names.prefix) + fmt::format(fmt::runtime(names.layer), layer);
    for (TensorSlot& slot : layer_slots(config, names, layer)) {
      std::vector<std::string> wanted, unwanted;
      for (const SlotPart& part : slot.parts) {
        const std::string target = target_of(part);
        if (!target.empty()) (asked(target) ? wanted : unwanted).push_back(target);
      }
      if (wanted.empty()) continue;
      std::string name = slot.name.substr(at.size(), slot.name.size() - at.size() - std::string_view(".weight").size());
      CHECK(unwanted.empty(),
            "--lora-targets: {} and {} are one projection in this model, '{}', which has one adapter; give all of them "
            "or none",
            fmt::join(wanted, ", "), fmt::join(unwanted, ", "), name);
      found.insert(wanted.begin(), wanted.end());
      modules.push_back({std::move(slot), std::move(name)});
    }
  }
  for (const std::string& target : targets)
    CHECK(found.contains(target), "--lora-targets: this model has no '{}'; it has {}", target, fmt::join(found, ", "));
  return modules;
}

std::int64_t inputs_of(const TensorSlot& slot) {
  return slot.shape[slot.transposed ? 0 : 1];
}

std::int64_t outputs_of(const TensorSlot& slot) {
  return slot.shape[slot.transposed ? 1 : 0];
}

std::int64_t lora_parameter_count(const std::vector<LoraModule>& modules, std::int64_t rank) {
  const auto smaller_side = [](const LoraModule& module) {
    return std::min(inputs_of(module.slot), outputs_of(module.slot));
  };
  const auto smallest = std::min_element(
      modules.begin(), modules.end(), [&](const auto& a, const auto& b) { return smaller_side(a) < smaller_side(b); });
  ASSERT(smallest != modules.end(), "an adapter of no projection");
  CHECK(rank >= 1 && rank <= smaller_side(*smallest),
        "--lora-rank: {}; must be 1 to {}, as '{}' has {} outputs of {} inputs", rank, smaller_side(*smallest),
        smallest->name, outputs_of(smallest->slot), inputs_of(smallest->slot));
  std::int64_t total = 0;
  for (const LoraModule& module : modules) {
    const std::int64_t sides = checked_add(inputs_of(module.slot), outputs_of(module.slot), module.name);
    total = checked_add(total, checked_mul(rank, sides, module.name), module.name);
  }
  return total;
}

TensorSlot row_slot(const TensorSlot& slot, std::int64_t columns) {
  TensorSlot rows = slot;
  rows.transposed = false;
  rows.shape = {outputs_of(slot), columns};
  for (SlotPart& part : rows.parts) part.shape = {part.shape.front(), columns};
  return rows;
}

}  // namespace gainlens::models
