#include "experiment/result_file.h"

#include "core/check.h"
#include "formats/content_checksum.h"
#include "formats/tensor_file.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <span>

namespace gainlens::experiment {
namespace {

constexpr std::string_view result_format = "gainlens-recommend-result",  // of every experiment: recommenders were first
    curve_prefix = "curve.", filter_prefix = "filter.", test_prefix = "test.", score_prefix = "score.";

/// The score that is stored in float32, without a prefix.
constexpr std::string_view rank_score = "rank";

template <typename Number>
formats::TensorToWrite tensor(std::string name, formats::DType dtype, std::span<const Number> numbers) {
  return {std::move(name), dtype, {std::ssize(numbers)}, std::as_bytes(numbers)};
}

template <typename Number>
std::vector<Number> numbers_of(const formats::TensorEntry& entry, formats::DType dtype, const std::string& where) {
  CHECK(entry.dtype == dtype && entry.shape.size() == 1, "{}: tensor '{}' has another type or shape than a result's",
        where, printable(entry.name, 100));
  std::vector<Number> numbers(static_cast<std::size_t>(entry.shape[0]));
  std::memcpy(numbers.data(), entry.bytes.data(), entry.bytes.size());
  return numbers;
}

constexpr std::string_view repair = "delete it and repeat the command that trained it, which computes it again";

/// What the file says beside its tensors, as the checksum takes it.
std::string head(const std::string& arm, const std::string& seed, const std::string& best_epoch,
                 const std::string& kept, const std::string& request) {
  return fmt::format("{}\n{}\n{}\n{}\n{}\n", arm, seed, best_epoch, kept, request);
}

formats::TensorFile open_result(const std::filesystem::path& file) {
  try {
    return formats::TensorFile::open(file);
  } catch (const InvalidArgument& error) {
    CHECK(::access(file.c_str(), R_OK) == 0, "{}", error.what());  // it is missing, or somebody else's
    throw_invalid("{}; {}", error.what(), repair);
  }
}

/// The metadata of a result.
struct Metadata {
  std::string arm, seed, best_epoch, kept, request, sha256;
};

Metadata metadata_of(const formats::TensorFile& stored, const std::string& where) {
  const auto& all = stored.metadata();
  const auto text = [&](const char* key) {
    const auto found = all.find(key);
    return found == all.end() ? std::string() : found->second;
  };
  CHECK(text("format") == result_format && !text("best_epoch").empty(),
        "{}: not the result of a training; delete it to train again", where);
  return {text("arm"), text("seed"), text("best_epoch"), text("kept"), text("request"), text("sha256")};
}

void prove(const formats::TensorFile& stored, const Metadata& metadata, const std::string& where) {
  if (metadata.sha256.empty()) return;
  std::vector<formats::TensorEntry> entries;
  for (const auto& [name, entry] : stored.entries()) entries.push_back(entry);
  const std::string found = formats::content_checksum(
      head(metadata.arm, metadata.seed, metadata.best_epoch, metadata.kept, metadata.request), entries);
  CHECK(found == metadata.sha256,
        "{}: the sha256 of its content is {}, and it says itself {}: the file has changed since it was written; {}",
        where, found, printable(metadata.sha256, 64), repair);
}

StoredResult read_result(const formats::TensorFile& stored, const Metadata& metadata, const std::string& where) {
  StoredResult read;
  Result& result = read.result;
  const char* const end = metadata.best_epoch.data() + metadata.best_epoch.size();
  const auto parsed = std::from_chars(metadata.best_epoch.data(), end, result.best_epoch);
  CHECK(parsed.ec == std::errc() && parsed.ptr == end && result.best_epoch >= 0, "{}: 'best_epoch' is no number; {}",
        where, repair);
  if (!metadata.kept.empty()) read.kept = parse_json(metadata.kept, where + " (kept)");
  read.request = metadata.request;
  read.has_checksum = !metadata.sha256.empty();
  for (const auto& [name, entry] : stored.entries()) {
    if (name.starts_with(curve_prefix)) {
      result.curve[name.substr(curve_prefix.size())] = numbers_of<double>(entry, formats::DType::f64, where);
    } else if (name.starts_with(filter_prefix)) {
      result.filter[name.substr(filter_prefix.size())] = numbers_of<double>(entry, formats::DType::f64, where);
    } else if (name.starts_with(test_prefix)) {
      const auto values = numbers_of<double>(entry, formats::DType::f64, where);
      CHECK(values.size() == 1, "{}: '{}' has {} numbers; must have 1", where, printable(name, 100), values.size());
      result.test[name.substr(test_prefix.size())] = values[0];
    } else if (name.starts_with(score_prefix)) {
      result.scores[name.substr(score_prefix.size())] = numbers_of<double>(entry, formats::DType::f64, where);
    } else {
      CHECK(name == rank_score, "{}: '{}' is no part of a result", where, printable(name, 100));
      const auto ranks = numbers_of<float>(entry, formats::DType::f32, where);
      result.scores[name].assign(ranks.begin(), ranks.end());
    }
  }
  runfile::complete_filter(result.filter);
  return read;
}

}  // namespace

bool is_finished(const Result& result, std::int64_t epochs, std::int64_t patience) {
  if (result.curve.empty()) return true;  // no training
  const std::int64_t done = std::ssize(result.curve.begin()->second);
  return done >= epochs || (patience > 0 && done - result.best_epoch >= patience);
}

void save_result(const std::filesystem::path& file, const std::string& label, std::uint64_t seed,
                 const StoredResult& stored) {
  const Result& result = stored.result;
  std::vector<formats::TensorToWrite> tensors;
  for (const auto& [name, values] : result.curve)
    tensors.push_back(tensor<double>(std::string(curve_prefix) + name, formats::DType::f64, values));
  for (const auto& [name, values] : result.filter)
    tensors.push_back(tensor<double>(std::string(filter_prefix) + name, formats::DType::f64, values));
  for (const auto& [name, value] : result.test)
    tensors.push_back(tensor<double>(std::string(test_prefix) + name, formats::DType::f64, {&value, 1}));
  std::vector<float> ranks;
  for (const auto& [name, values] : result.scores) {
    if (name == rank_score) {
      for (const double rank : values) ranks.push_back(static_cast<float>(rank));  // whole and half numbers: exact
      tensors.push_back(tensor<float>(name, formats::DType::f32, ranks));
    } else {
      tensors.push_back(tensor<double>(std::string(score_prefix) + name, formats::DType::f64, values));
    }
  }
  std::sort(tensors.begin(), tensors.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  const std::string seed_text = std::to_string(seed), best_epoch = std::to_string(result.best_epoch);
  const std::string kept = stored.kept.is_null() ? "" : stored.kept.dump();
  std::map<std::string, std::string> metadata = {
      {"format", std::string(result_format)},
      {"arm", label},
      {"seed", seed_text},
      {"best_epoch", best_epoch},
      {"sha256", formats::content_checksum(head(label, seed_text, best_epoch, kept, stored.request), tensors)}};
  if (!kept.empty()) metadata["kept"] = kept;
  if (!stored.request.empty()) metadata["request"] = stored.request;
  formats::write_tensors(file, tensors, metadata);
}

StoredResult load_result(const std::filesystem::path& file) {
  const formats::TensorFile stored = open_result(file);
  const std::string where = printable(file.string());
  const Metadata metadata = metadata_of(stored, where);
  prove(stored, metadata, where);
  return read_result(stored, metadata, where);
}

StoredResult load_result(const std::filesystem::path& file, const std::string& arm, std::uint64_t seed) {
  const formats::TensorFile stored = open_result(file);
  const std::string where = printable(file.string());
  const Metadata metadata = metadata_of(stored, where);
  const bool says_of_which = !(metadata.arm.empty() && metadata.seed.empty());  // the first versions did not
  CHECK(!says_of_which || (metadata.arm == arm && metadata.seed == std::to_string(seed)),
        "{}: not the result of arm {}, seed {}; delete it to train again", where, arm, seed);
  prove(stored, metadata, where);
  return read_result(stored, metadata, where);
}

}  // namespace gainlens::experiment
