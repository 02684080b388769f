#include "recommend/seed_result.h"

#include "core/check.h"
#include "formats/tensor_file.h"

#include <charconv>
#include <cstring>
#include <span>

namespace gainlens::recommend {
namespace {

constexpr std::string_view result_format = "gainlens-recommend-result", curve_prefix = "curve.",
                           filter_prefix = "filter.", test_prefix = "test.";

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

}  // namespace

void save_seed_result(const std::filesystem::path& file, const std::string& arm, std::uint64_t seed,
                      const SeedResult& result) {
  std::vector<formats::TensorToWrite> tensors;
  for (const auto& [name, values] : result.curve)
    tensors.push_back(tensor<double>(std::string(curve_prefix) + name, formats::DType::f64, values));
  for (const auto& [name, values] : result.filter)
    tensors.push_back(tensor<double>(std::string(filter_prefix) + name, formats::DType::f64, values));
  for (const auto& [name, value] : result.test)
    tensors.push_back(tensor<double>(std::string(test_prefix) + name, formats::DType::f64, {&value, 1}));
  tensors.push_back(tensor<float>("rank", formats::DType::f32, result.rank));
  formats::write_tensors(file, tensors,
                         {{"format", std::string(result_format)},
                          {"arm", arm},
                          {"seed", std::to_string(seed)},
                          {"best_epoch", std::to_string(result.best_epoch)}});
}

SeedResult load_seed_result(const std::filesystem::path& file, const std::string& arm, std::uint64_t seed) {
  const formats::TensorFile stored = formats::TensorFile::open(file);
  const std::string where = printable(file.string());
  const auto& metadata = stored.metadata();
  const auto format = metadata.find("format"), epoch = metadata.find("best_epoch");
  CHECK(format != metadata.end() && format->second == result_format && epoch != metadata.end(),
        "{}: not the result of a training; delete it to train again", where);
  const auto of_arm = metadata.find("arm"), of_seed = metadata.find("seed");
  CHECK(of_arm != metadata.end() && of_seed != metadata.end() && of_arm->second == arm &&
            of_seed->second == std::to_string(seed),
        "{}: not the result of arm {}, seed {}; delete it to train again", where, arm, seed);
  SeedResult result;
  const char* const end = epoch->second.data() + epoch->second.size();
  const auto parsed = std::from_chars(epoch->second.data(), end, result.best_epoch);
  CHECK(parsed.ec == std::errc() && parsed.ptr == end, "{}: 'best_epoch' is no number", where);
  for (const auto& [name, entry] : stored.entries()) {
    if (name.starts_with(curve_prefix)) {
      result.curve[name.substr(curve_prefix.size())] = numbers_of<double>(entry, formats::DType::f64, where);
    } else if (name.starts_with(filter_prefix)) {
      result.filter[name.substr(filter_prefix.size())] = numbers_of<double>(entry, formats::DType::f64, where);
    } else if (name.starts_with(test_prefix)) {
      const auto values = numbers_of<double>(entry, formats::DType::f64, where);
      CHECK(values.size() == 1, "{}: '{}' has {} numbers; must have 1", where, printable(name, 100), values.size());
      result.test[name.substr(test_prefix.size())] = values[0];
    } else {
      CHECK(name == "rank", "{}: '{}' is no part of a result", where, printable(name, 100));
      result.rank = numbers_of<float>(entry, formats::DType::f32, where);
    }
  }
  return result;
}

}  // namespace gainlens::recommend
