#include "interventions/document_passes.h"

#include "core/check.h"
#include "interventions/rounding.h"
#include "interventions/stream_reading.h"
#include "sweep/one_sequence.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace gainlens::interventions {
namespace {

/// Most tokens that go through the layers together, so that memory does not grow with the number of arms.
constexpr std::int64_t batch_tokens = std::int64_t{1} << 15;

/// What the writes of an arm saw.
struct Seen {
  double squares_before = 0, squares_after = 0;
  std::size_t writes = 0;
};

double sum_of_squares(const at::Tensor& tensor) {
  return tensor.to(at::kDouble).square().sum().item<double>();
}

/// Writes, and notes what was there.
at::Tensor written(const Arm& arm, const PlacedWrite& placed, const at::Tensor& tensor, const SiteValues& means,
                   const SiteValues& donor, Seen& seen) {
  at::Tensor replacement = tensor.clone(at::MemoryFormat::Contiguous);
  at::Tensor part = placed.place.part(replacement, placed.write);
  const at::Tensor before = part.clone();
  part.copy_(new_values(placed, before, means, donor));
  CHECK(arm.may_do_nothing || !at::equal(before, part), "{}: it changes nothing at {} (norm {:.6g} before and after)",
        arm.named(), placed.place.site.name, std::sqrt(sum_of_squares(before)));
  seen.squares_before += sum_of_squares(before);
  seen.squares_after += sum_of_squares(part);
  ++seen.writes;
  return replacement;
}

double mean(const std::vector<double>& losses) {
  if (losses.empty()) return 0;  // nobody reads them
  return std::accumulate(losses.begin(), losses.end(), 0.0) / static_cast<double>(losses.size());
}

/// The sites of an arm if a pass in which they are replaced may take another way than a native one; "" if it does not.
/// Of several sites together this is not known.
std::string other_ways(const Arm& arm) {
  std::set<std::string> sites;
  for (const PlacedWrite& placed : arm.writes) sites.insert(placed.place.site.name);
  if (sites.size() == 1 && replacing_keeps_bits(arm.writes.front().place.site)) return {};
  std::string key;
  for (const std::string& site : sites) key += site + ' ';
  return key;
}

/// Refuses an explicit arm that changed no logit. Several writes that cancel each other need not do so bit by bit.
void check_acted(const Arm& arm, const Seen& seen, double change, double rounding) {
  if (arm.may_do_nothing) return;
  CHECK(change > 0, "{}: it changed its site (norm {:.6g} to {:.6g}) and no logit", arm.named(),
        std::sqrt(seen.squares_before), std::sqrt(seen.squares_after));
  CHECK(arm.writes.size() == 1 || change > rounding,
        "{}: its writes cancel each other: no logit changed by more than rounding ({:.3g})", arm.named(), change);
}

/// What rounding may do in a whole pass to numbers of which the largest is `largest`.
double rounding_by(at::ScalarType dtype, double largest) {
  constexpr double steps = 64;
  return steps * unit_of(dtype) * largest;
}

/// The largest change of a logit that may be rounding alone. Half precision rounds so much that it says nothing.
double rounding_of(at::ScalarType dtype, double largest_logit) {
  return dtype == at::kDouble || dtype == at::kFloat ? rounding_by(dtype, largest_logit) : 0;
}

/// Whether a position may be rounded otherwise because another one changed. An expert then gets another number of rows,
/// and only our own products promise that a row has the same bits (kernels/linear/linear.h).
bool rows_depend_on_others(const models::DecoderConfig& config, const at::Tensor& stream) {
  return config.experts.count > 0 && (stream.scalar_type() == at::kDouble || !stream.is_cpu());
}

/// @param rounds  as rows_depend_on_others() says
void check_causal(const Arm& arm, const at::Tensor& stream, const at::Tensor& base, bool rounds) {
  const std::int64_t first = arm.first_position();
  if (first == 0) return;
  const at::Tensor before = base.slice(1, 0, first), found = stream.slice(1, 0, first);
  if (at::equal(found, before)) return;
  if (!rounds) throw_run_failed("{}: the stream changed before position {}, where it writes first", arm.named(), first);
  const double change = (found - before).abs().max().item<double>();
  const double allowed = rounding_by(base.scalar_type(), base.abs().max().item<double>());
  if (change <= allowed) return;
  throw_run_failed(
      "{}: the stream changed by {:.3g} before position {}, where it writes first, and rounding explains {:.3g}; if "
      "rounding made a token choose another expert, take --dtype float32 on the CPU, which rounds each position alone",
      arm.named(), change, first, allowed);
}

}  // namespace

DocumentPasses::DocumentPasses(models::Decoder& model, std::vector<std::int32_t> tokens,
                               const std::set<std::int64_t>& starts, const hooks::ForwardOptions& options,
                               Question question)
    : model_(model),
      ids_(std::move(tokens)),
      tokens_(sweep::one_sequence(ids_)),
      options_(options),
      question_(std::move(question)) {
  hooks::Hooks watch;
  const std::int64_t layers = model.config().layers;
  for (const std::int64_t start : starts) {
    if (start < 0) continue;
    const hooks::Site site =
        start < layers ? hooks::block_site(start, "hook_resid_pre") : hooks::block_site(layers - 1, "hook_resid_post");
    watch.observe(site, [this, start](const hooks::Site&, const at::Tensor& seen) { before_[start] = seen; });
  }
  native_ = model_.forward(tokens_, options_, watch).hidden;
  const StreamReading reading = read_streams(model_, native_, {}, ids_, question_).front();
  native_nll_ = mean(reading.losses);
  native_answer_ = reading.answer;
}

/// Passes with these hooks, from the stored stream. A filter's precision is not in the stream, so that such a model
/// runs whole; so does an arm of the embedding.
std::vector<hooks::Stream> DocumentPasses::continued(std::int64_t start, const std::vector<hooks::Hooks>& all) {
  std::vector<hooks::ForwardRequest> requests;
  requests.reserve(all.size());
  for (const hooks::Hooks& hooks : all) requests.push_back({&tokens_, options_, &hooks});
  if (start < 0 || model_.config().filter) return model_.forward_all(requests);
  return model_.forward_from(start, before_.at(start), requests);
}

/// The pass that an arm is compared with bit for bit: where it writes, the same values are written.
const at::Tensor& DocumentPasses::base_of(const Arm& arm) {
  const std::string key = other_ways(arm);
  if (key.empty()) return native_;
  at::Tensor& base = bases_[key];
  if (base.defined()) return base;
  std::vector<hooks::Hooks> same(1);
  for (const PlacedWrite& placed : arm.writes) {
    same.front().replace(hooks::Glob(placed.place.site.name), [](const hooks::Site&, const at::Tensor& seen) {
      return seen.clone(at::MemoryFormat::Contiguous);  // laid out as written() leaves it
    });
  }
  return base = continued(arm.start(), same).front().hidden;
}

std::vector<InterventionEffect> DocumentPasses::run_batch(std::span<const Arm* const> arms, const SiteValues& means,
                                                          const SiteValues& donor) {
  std::vector<Seen> seen(arms.size());
  std::vector<hooks::Hooks> all(arms.size());
  for (std::size_t i = 0; i < arms.size(); ++i) {
    for (const PlacedWrite& placed : arms[i]->writes) {
      all[i].replace(hooks::Glob(placed.place.site.name), [&, i](const hooks::Site&, const at::Tensor& tensor) {
        return written(*arms[i], placed, tensor, means, donor, seen[i]);
      });
    }
  }
  const std::vector<hooks::Stream> streams = continued(arms.front()->start(), all);

  const bool rounds = rows_depend_on_others(model_.config(), native_);
  std::vector<InterventionEffect> effects(arms.size());
  std::map<const void*, std::vector<std::size_t>> by_base;  // arms that are compared with the same pass
  for (std::size_t i = 0; i < arms.size(); ++i) {
    const Arm& arm = *arms[i];
    if (seen[i].writes != arm.writes.size())
      throw_run_failed("{}: {} of {} writes were made", arm.named(), seen[i].writes, arm.writes.size());
    const at::Tensor& base = base_of(arm);
    check_causal(arm, streams[i].hidden, base, rounds);
    by_base[base.const_data_ptr()].push_back(i);
  }
  for (const auto& [address, places] : by_base) {
    std::vector<ChangedStream> changed;
    for (const std::size_t i : places) changed.push_back({streams[i].hidden, arms[i]->first_position()});
    const std::vector<StreamReading> readings =
        read_streams(model_, base_of(*arms[places.front()]), changed, ids_, question_);
    const double rounding = rounding_of(native_.scalar_type(), readings.front().largest_logit);
    for (std::size_t k = 0; k < places.size(); ++k) {
      const std::size_t i = places[k];
      const StreamReading& reading = readings[k + 1];
      const bool acted = reading.largest_change > (rounds ? rounding : 0);
      const double change = acted ? reading.largest_change : 0;
      check_acted(*arms[i], seen[i], change, rounding);
      // A watched pass that changes nothing may still round otherwise than the native one.
      effects[i] = {acted ? mean(reading.losses) : native_nll_, std::sqrt(seen[i].squares_before),
                    std::sqrt(seen[i].squares_after), change, acted ? reading.answer : native_answer_};
    }
  }
  return effects;
}

std::vector<InterventionEffect> DocumentPasses::run(const std::vector<const Arm*>& arms, const SiteValues& means,
                                                    const SiteValues& donor) {
  const auto together = static_cast<std::size_t>(std::max<std::int64_t>(1, batch_tokens / std::ssize(ids_)));
  bases_.clear();  // those of other arms
  std::vector<InterventionEffect> effects;
  for (std::size_t begin = 0; begin < arms.size(); begin += together) {
    ASSERT(arms[begin]->start() == arms.front()->start(), "arms with different starts");
    const std::span<const Arm* const> batch = std::span(arms).subspan(begin, std::min(together, arms.size() - begin));
    for (const InterventionEffect& effect : run_batch(batch, means, donor)) effects.push_back(effect);
  }
  return effects;
}

}  // namespace gainlens::interventions
