#include "models/checkpoint/checkpoint_source.h"

#include "core/check.h"
#include "core/counted.h"
#include "formats/adapter_folder.h"
#include "formats/half.h"
#include "models/checkpoint/compute_dtype.h"
#include "models/checkpoint/layout_names.h"
#include "models/checkpoint/model_size.h"
#include "models/decoder/filter_config.h"
#include "models/families/class_names.h"
#include "models/families/other_keys.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <system_error>

namespace gainlens::models {
namespace {

constexpr std::uintmax_t max_config_bytes = 16u << 20;
// A petabyte of float32: each size may be in its range while the product is impossible.
constexpr std::int64_t max_parameters = std::int64_t{1} << 48;
// In all layers together. Each has tensors of its own, which are listed before the weight files are looked at: a small
// config.json must not make a list that fills the memory.
constexpr std::int64_t max_experts = std::int64_t{1} << 18;

struct FamilyConfig {
  const Family* family;
  DecoderConfig config;
  std::vector<std::string> notes;  ///< what the user should know about the keys
};

/// Whose keys a configuration has.
enum class KeysOf { reference, gguf };

/// Removes a key, or a key of an object in it: "rope_scaling.attn_factor".
void remove_key(Json& object, const std::string& name, const std::string& where) {
  const auto dot = name.find('.');
  const auto outer = object.is_object() ? object.find(name.substr(0, dot)) : object.end();
  CHECK(object.is_object() && outer != object.end(), "--ignore-config-key: {} has no key '{}'; name a key that it has",
        where, printable(name, 100));
  if (dot == std::string::npos || object.contains(name)) {
    object.erase(name);
  } else {
    remove_key(*outer, name.substr(dot + 1), where);
  }
}

FamilyConfig parse_config(const Json& given, const std::string& where, KeysOf keys, const IgnoredKeys& ignored = {}) {
  CHECK(ignored.empty() || given.is_object(), "{}: is not a JSON object", where);
  Json document = given;
  for (const std::string& key : ignored) remove_key(document, key, where);
  ConfigReader reader(document, where);
  const Family& family = family_of_config(reader);
  check_class_names(reader, family);
  DecoderConfig config = family.parse(reader);
  config.family = family.name;
  CHECK(reader.find(filter_key) != nullptr || reader.find(filter_arm_key) == nullptr,
        "{}: '{}' is given without '{}', the options of its filter", where, filter_arm_key, filter_key);
  if (const Json* filter = reader.find(filter_key)) {
    const std::string place = fmt::format("{}: '{}'", where, filter_key);
    config.filter = parse_filter(*filter, place);
    if (const Json* arm = reader.find(filter_arm_key)) {
      const std::string name = fmt::format("{}: '{}'", where, filter_arm_key);
      CHECK(arm->is_string(), "{} is {}; must be a text", name, printable(arm->dump(), 60));
      config.filter_arm = decoder_arm(arm->get<std::string>(), name);
      CHECK(config.filter_arm != bft::Arm::plain, "{} is plain, and '{}' is given", name, filter_key);
    }
    check_filter(config, place);
  }
  check_other_keys(reader, config, family, keys == KeysOf::reference && !has_own_code(reader));
  const std::int64_t experts = config.layers * config.experts.count;
  CHECK(experts <= max_experts, "{}: {} layers of {} experts are {} experts; at most {} are supported", where,
        config.layers, config.experts.count, experts, max_experts);
  const std::int64_t parameters = parameter_count(config);
  CHECK(parameters <= max_parameters, "{}: the sizes describe {} parameters; at most {} are supported", where,
        parameters, max_parameters);
  return {&family, std::move(config), reader.notes()};
}

FamilyConfig read_config(const std::filesystem::path& folder, const IgnoredKeys& ignored) {
  const std::filesystem::path file = folder / "config.json";
  return parse_config(read_json_file(file, max_config_bytes), printable(file.string()), KeysOf::reference, ignored);
}

/// The GGUF file at `path`; empty if `path` is a folder in Hugging Face layout.
/// @throws InvalidArgument  the folder has both
std::optional<std::filesystem::path> gguf_at(const std::filesystem::path& path) {
  const auto gguf = formats::find_gguf(path);
  std::error_code error;
  if (!gguf || !std::filesystem::is_directory(path, error)) return gguf;
  for (const char* name : {"model.safetensors", "model.safetensors.index.json"}) {
    CHECK(!std::filesystem::exists(path / name, error),
          "{}: both {} and '{}', and either could be meant; give the .gguf file, or move it away",
          printable(path.string()), name, printable(gguf->filename().string()));
  }
  return gguf;
}

/// Layers after the last one that predict further tokens: how the names of their tensors begin.
std::vector<std::string> further_layers(const TensorEntries& entries, const Family& family, const TensorNames& names,
                                        std::int64_t layers) {
  std::vector<std::string> found;
  for (std::int64_t layer = layers; !family.further_layers.empty(); ++layer) {
    const std::string prefix = std::string(names.prefix) + fmt::format(fmt::runtime(names.layer), layer);
    if (!entries.contains(fmt::format("{}{}.weight", prefix, family.further_layers))) break;
    found.push_back(prefix);
  }
  return found;
}

/// Pairs every FP8 weight with its `_scale_inv`, and `_blocks` with `_scales`.
std::map<std::string, formats::ScaledTensor, std::less<>> scaled_tensors(const TensorEntries& entries,
                                                                         const std::string& where) {
  std::map<std::string, formats::ScaledTensor, std::less<>> found;
  constexpr std::string_view blocks = "_blocks";
  for (const auto& [name, entry] : entries) {
    if (entry.dtype == formats::DType::f8_e4m3) {
      const auto scales = entries.find(name + "_scale_inv");
      CHECK(scales != entries.end(),
            "{}: '{}' is F8_E4M3, and '{}_scale_inv' is missing; without the scales its values are not known", where,
            printable(name, 100), printable(name, 100));
      found.emplace(name, scaled_tensor(formats::ScaledForm::fp8_blocks, entry, scales->second, where));
    } else if (entry.dtype == formats::DType::u8 && name.ends_with(blocks)) {
      const std::string base = name.substr(0, name.size() - blocks.size());
      const auto scales = entries.find(base + "_scales");
      CHECK(scales != entries.end(), "{}: '{}' is there, and '{}_scales' is missing", where, printable(name, 100),
            printable(base, 100));
      found.emplace(base, scaled_tensor(formats::ScaledForm::mxfp4, entry, scales->second, where));
    }
  }
  return found;
}

void refuse_ignored_keys(const std::filesystem::path& gguf, const IgnoredKeys& ignored) {
  CHECK(ignored.empty(), "--ignore-config-key {}: {} is a GGUF file, which has no config.json; leave the option out",
        printable(ignored.front(), 100), printable(gguf.string()));
}

/// Some files join gate and up of the experts in one stack: for each expert the rows of the gate, then of up.
TensorNames with_joined_experts(const formats::GgufFile& file, TensorNames names) {
  const std::string_view joined = "ffn_gate_up_exps.weight";
  const auto is_joined = [joined](const auto& entry) { return entry.first.ends_with(joined); };
  if (std::ranges::none_of(file.entries(), is_joined)) return names;
  names.expert_gate_up = joined;
  names.expert_gate_up_bias = "ffn_gate_up_exps.bias";
  names.expert_down_stack = "ffn_down_exps.weight";
  names.expert_down_bias = "ffn_down_exps.bias";
  names.expert_stacks_by_output = true;
  return names;
}

bool joins_latent_keys(const formats::GgufFile& file, const TensorNames& names) {
  const std::string first = fmt::format(fmt::runtime(names.layer), 0);
  return file.entries().contains(fmt::format("{}{}.weight", first, names.key_value_of_latent));
}

CheckpointSource open_gguf(const std::filesystem::path& path) {
  CheckpointSource source;
  source.path = path;
  auto file = formats::GgufFile::open(path);
  source.files = file.files();
  GgufDescription description = describe_gguf(file);
  source.config = parse_config(description.config, printable(path.string()), KeysOf::gguf).config;
  source.family = description.family;
  source.remarks = std::move(description.remarks);
  source.notes = std::move(description.notes);
  source.inert_prefixes = std::move(description.inert_prefixes);
  source.names = source.family->names == nullptr ? source.family->gguf.tensors
                                                 : source.family->names(source.config, source.family->gguf.tensors);
  source.names = with_joined_experts(file, source.names);
  // Older files of latent attention join what newer ones have as two stacks.
  if (!source.names.key_of_latent.empty() && !joins_latent_keys(file, source.names))
    source.names.key_value_of_latent = "";
  source.tensors = std::move(file);
  return source;
}

CheckpointSource open_folder(const std::filesystem::path& path, const IgnoredKeys& ignored) {
  CheckpointSource source;
  source.path = formats::resolve_checkpoint_folder(path);
  FamilyConfig described = read_config(source.path, ignored);
  source.family = described.family;
  source.config = std::move(described.config);
  auto directory = formats::TensorDirectory::open(source.path);
  source.files = directory.files();
  source.files.insert(source.files.begin(), source.path / "config.json");
  source.names = names_in(directory.entries(), *source.family, tensor_names(*source.family, source.config));
  source.notes = std::move(described.notes);
  const auto remarks = directory.remarks();
  source.notes.insert(source.notes.end(), remarks.begin(), remarks.end());
  source.inert_prefixes = further_layers(directory.entries(), *source.family, source.names, source.config.layers);
  if (const std::size_t further = source.inert_prefixes.size(); further > 0)
    source.notes.push_back(fmt::format(
        "further layers after those of config.json: {}; they predict further tokens, and the language model "
        "does not run them",
        further));
  source.scaled = scaled_tensors(directory.entries(), source.where());
  source.tensors = std::move(directory);
  return source;
}

/// A model without adapter.
CheckpointSource open_base(const std::filesystem::path& path, const IgnoredKeys& ignored) {
  const auto gguf = gguf_at(path);
  if (gguf) refuse_ignored_keys(*gguf, ignored);
  CheckpointSource source = gguf ? open_gguf(*gguf) : open_folder(path, ignored);
  source.base = source.path;
  return source;
}

/// Element `index` of a tensor in F64, F32, F16 or BF16.
double value_at(const formats::TensorEntry& entry, std::size_t index) {
  const auto read = [&](auto value) {
    std::memcpy(&value, entry.bytes.data() + index * sizeof(value), sizeof(value));
    return value;
  };
  switch (entry.dtype) {
    case formats::DType::f64:
      return read(double{});
    case formats::DType::f32:
      return read(float{});
    case formats::DType::f16:
      return formats::half_to_float(read(std::uint16_t{}));
    default:
      return std::bit_cast<float>(std::uint32_t{read(std::uint16_t{})} << 16);
  }
}

/// Whether two tensors hold the same numbers, each in a dtype of its own. Not so for quantised weights.
bool same_values(const formats::TensorEntry& one, const formats::TensorEntry& other) {
  if (one.shape != other.shape || !stored_compute_dtype(one.dtype) || !stored_compute_dtype(other.dtype)) return false;
  if (one.dtype == other.dtype) return std::ranges::equal(one.bytes, other.bytes);
  std::size_t count = 1;
  for (const std::int64_t size : one.shape) count *= static_cast<std::size_t>(size);
  for (std::size_t i = 0; i < count; ++i) {
    if (value_at(one, i) != value_at(other, i)) return false;
  }
  return true;
}

/// PEFT replaces weights of the base by those that the adapter repeats.
void check_repeated(const CheckpointSource& source) {
  const std::string_view usual = tensor_names(*source.family, source.config).prefix;
  for (const RepeatedBase& repeated : source.adapter->repeated) {
    std::string name = repeated.name;
    if (name.starts_with(usual)) name.replace(0, usual.size(), source.names.prefix);
    const auto found = source.entries().find(name);
    CHECK(found != source.entries().end() && same_values(found->second, repeated.entry),
          "{}: holds weights of the base, '{}', which are not those of {}: a base with other weights, as after a "
          "change of its vocabulary, is not read; merge the adapter in PEFT",
          printable(source.adapter->files.back().string()), repeated.name, printable(source.base.string()));
  }
}

}  // namespace

const TensorEntries& CheckpointSource::entries() const {
  return std::visit([](const auto& held) -> const TensorEntries& { return held.entries(); }, tensors);
}

std::string CheckpointSource::where() const {
  return printable(path.string());
}

CheckpointSource open_checkpoint(const std::filesystem::path& path, const IgnoredKeys& ignored) {
  const auto folder = formats::find_adapter(path);
  if (!folder) return open_base(path, ignored);
  CheckpointSource source = open_base(formats::adapter_base(*folder), ignored);
  source.path = *folder;
  source.adapter = open_lora_adapter(*folder, *source.family, source.config);
  check_repeated(source);
  source.files.insert(source.files.begin(), source.adapter->files.begin(), source.adapter->files.end());
  source.remarks.push_back(fmt::format("the weights of {}, changed in {} by a LoRA adapter",
                                       printable(source.base.string()),
                                       counted(source.adapter->factors.size(), "projection")));
  return source;
}

DecoderConfig read_decoder_config(const std::filesystem::path& given, const IgnoredKeys& ignored) {
  const auto adapter = formats::find_adapter(given);
  const std::filesystem::path path = adapter ? formats::adapter_base(*adapter) : given;
  if (const auto gguf = gguf_at(path)) {
    refuse_ignored_keys(*gguf, ignored);
    return parse_config(describe_gguf(formats::GgufFile::open(*gguf)).config, printable(gguf->string()), KeysOf::gguf)
        .config;
  }
  return read_config(formats::resolve_checkpoint_folder(path), ignored).config;
}

DecoderConfig parse_decoder_config(const Json& document, const std::string& where) {
  return parse_config(document, where, KeysOf::reference).config;
}

}  // namespace gainlens::models
