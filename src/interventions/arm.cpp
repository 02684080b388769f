#include "interventions/arm.h"

#include "core/check.h"
#include "formats/tensor_file.h"
#include "models/checkpoint/tensor_values.h"
#include "models/checkpoint/torch_dtype.h"

#include <ATen/ATen.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace gainlens::interventions {
namespace {

/// The values of a site in a file of `gainlens capture`.
at::Tensor values_in_file(const Write& write, const hooks::SiteShape& site, std::int64_t length, at::ScalarType dtype) {
  const std::string where = printable(write.file.string());
  const formats::TensorFile file = formats::TensorFile::open(write.file);
  const formats::TensorEntry& entry = file.at(site.site.name);
  std::vector<std::int64_t> expected;
  for (const std::string& size : site.shape)
    expected.push_back(size == "batch" ? 1 : size == "position" ? length : std::stoll(size));
  CHECK(entry.shape == expected, "{}: {} has shape [{}]; this intervention needs [{}], the whole site of a document",
        where, site.site.name, fmt::join(entry.shape, ", "), fmt::join(expected, ", "));
  CHECK(models::weight_dtype(entry.dtype), "{}: {} is stored as {}; a site has floating-point numbers", where,
        site.site.name, formats::name_of(entry.dtype));
  return models::read_values(entry, dtype, where);
}

/// Weights of queries that no longer see some keys: what a score of -infinity there would give.
/// @param weights  [batch, head, query, key]
at::Tensor without_keys(const PlacedWrite& placed, const at::Tensor& weights) {
  const IndexRange& keys = *placed.write.key;
  const auto sum = [](const at::Tensor& of) { return of.sum(-1, /*keepdim=*/true, at::kDouble); };
  at::Tensor rest = weights.clone();
  const at::Tensor removed = sum(weights.narrow(-1, keys.first, keys.size()));
  rest.narrow(-1, keys.first, keys.size()).zero_();
  const at::Tensor sum_of_rest = sum(rest);
  const at::Tensor left = placed.place.sink_logits ? 1 - removed : sum_of_rest;
  const at::Tensor blind = removed.gt(0).logical_and(sum_of_rest.eq(0));
  if (blind.any().item<bool>()) {
    const std::int64_t first = placed.write.position ? placed.write.position->first : 0;
    const auto query = blind.any(1).flatten().nonzero()[0].item<std::int64_t>() + first;
    throw_invalid("intervention '{}': query {} sees no other key; leave it out with [position=START:STOP]",
                  printable(placed.write.text()), query);
  }
  const at::Tensor total = placed.place.sink_logits ? at::ones_like(left) : removed + sum_of_rest;
  return at::where(removed.gt(0), rest.to(at::kDouble) * (total / left), weights.to(at::kDouble))
      .to(weights.scalar_type());
}

}  // namespace

std::string Arm::named() const {
  return fmt::format("{} '{}'", control ? "the control (another --seed draws other heads)" : "intervention",
                     printable(text));
}

std::int64_t Arm::start() const {
  const auto first = std::ranges::min_element(writes, {}, [](const PlacedWrite& one) { return one.place.layer; });
  return first->place.layer;
}

std::int64_t Arm::first_position() const {
  const auto position = [](const PlacedWrite& one) { return one.write.position ? one.write.position->first : 0; };
  return position(*std::ranges::min_element(writes, {}, position));
}

std::string Arm::kind() const {
  std::set<std::string> kinds;
  for (const PlacedWrite& one : writes) kinds.insert(one.write.kind());
  return fmt::format("{}", fmt::join(kinds, " + "));
}

std::set<std::string> Arm::sites(Mode mode) const {
  std::set<std::string> found;
  for (const PlacedWrite& one : writes) {
    if (one.write.mode == mode) found.insert(one.write.site);
  }
  return found;
}

Arm place_arm(const Intervention& intervention, const models::DecoderConfig& config,
              const std::vector<hooks::SiteShape>& sites, std::int64_t length, at::ScalarType dtype) {
  Arm arm{intervention.text(), {}};
  for (const Write& write : intervention.writes) {
    PlacedWrite placed{write, place_of(write, config, sites, length), {}};
    if (write.mode == Mode::file) {
      const auto shape = std::ranges::find(sites, placed.place.site, &hooks::SiteShape::site);
      placed.values = values_in_file(write, *shape, length, dtype);
    }
    arm.writes.push_back(std::move(placed));
  }
  return arm;
}

at::Tensor new_values(const PlacedWrite& placed, const at::Tensor& part, const SiteValues& means,
                      const SiteValues& donor) {
  const Write& write = placed.write;
  switch (write.mode) {
    case Mode::zero:
      return at::zeros_like(part);
    case Mode::scale:
      return part * write.factor;
    case Mode::mean: {
      Write all_positions = write;  // a mean has one position
      all_positions.position.reset();
      return placed.place.part(means.at(write.site), all_positions).to(part.scalar_type()).expand_as(part);
    }
    case Mode::resample:
    case Mode::patch:
      return placed.place.part(donor.at(write.site), write);
    case Mode::file:
      return placed.place.part(placed.values, write);
    case Mode::knockout:
      return without_keys(placed, part);
  }
  throw_internal_error(__FILE__, __LINE__, "unknown mode");
}

}  // namespace gainlens::interventions
