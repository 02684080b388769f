#include "analyses/statements.h"

#include "analyses/gain_model.h"
#include "analyses/statistics.h"
#include "analyses/value_norms.h"
#include "core/check.h"
#include "core/counted.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace gainlens::analyses {
namespace {

constexpr double small_share = 0.01;         // for a smaller share the finding says why it is small
constexpr std::size_t max_prior_groups = 4;  // of heads

/// "0.013", "99", "100": two significant digits, and all digits before the point.
std::string two_digits(double number) {
  return number >= 10 ? fmt::format("{:.0f}", number) : fmt::format("{:.2g}", number);
}

/// A run's numbers by head, [layer * heads + head]; every entry is finite.
using ByHead = Maybe<std::vector<double>>;

/// The input of every statement.
struct Source {
  const runfile::RunReader& reader;
  std::vector<Length> lengths;

  double prior_variance() const { return analyses::prior_variance(reader.request()); }
  std::size_t kv_head_of(std::size_t head) const {
    return head * static_cast<std::size_t>(reader.kv_heads()) / static_cast<std::size_t>(reader.heads());
  }

  /// Calls number(layer, head) for every head, or for every place of the axis kv_head that begins a KV head of its
  /// layer. Missing if one of the numbers is not finite.
  template <typename Number>
  ByHead collect(bool by_kv_head, std::string_view name, Number&& number) const {
    std::vector<double> values;
    for (const std::size_t layer : all_layers(reader)) {
      const auto heads = static_cast<std::size_t>(by_kv_head ? reader.kv_heads() : reader.heads());
      const std::size_t step = by_kv_head ? static_cast<std::size_t>(reader.kv_repeats(layer)) : std::size_t{1};
      for (std::size_t head = 0; head < heads; head += step) {
        values.push_back(number(layer, head));
        if (!std::isfinite(values.back())) {
          return ByHead::none(
              fmt::format("{} has no finite value at layer {} head {}", name, reader.layers()[layer], head));
        }
      }
    }
    return values;
  }

  ByHead by_head(std::string_view name) const { return read(name, /*by_kv_head=*/false); }
  ByHead by_kv_head(std::string_view name) const { return read(name, /*by_kv_head=*/true); }

  /// Mean norm of the values of all keys except key 0, by query head.
  ByHead other_norms() const {
    const auto binned = Cells::read(reader, "values/norm"), first = Cells::read(reader, "values/first_norm");
    if (!binned || !first) return ByHead::none(binned ? first.reason() : binned.reason());
    return collect(/*by_kv_head=*/false, "values/norm", [&](std::size_t layer, std::size_t head) {
      std::vector<double> means;
      std::size_t ignored = 0;
      for (const Length& length : lengths) {
        std::vector<double> bins;
        for (std::size_t bin = 0; bin < binned->last(); ++bin) {
          bins.push_back(mean_over_samples(*binned, length, layer, kv_head_of(head), bin, ignored));
        }
        const double norm = mean_over_samples(*first, length, layer, kv_head_of(head), 0, ignored);
        means.push_back(mean_of_rest({norm}, bins, length.tokens));
      }
      return mean(means);
    });
  }

 private:
  ByHead read(std::string_view name, bool by_kv_head) const {
    const auto cells = Cells::read(reader, name);
    if (!cells) return ByHead::none(cells.reason());
    return collect(by_kv_head, name, [&](std::size_t layer, std::size_t head) {
      std::size_t ignored = 0;
      return mean_over_lengths(*cells, lengths, layer, head, 0, ignored);
    });
  }
};

double least(const std::vector<double>& values) {
  return *std::min_element(values.begin(), values.end());
}
double largest(const std::vector<double>& values) {
  return *std::max_element(values.begin(), values.end());
}

/// The statement for a run without a dataset. A statement decided by algebra needs no numbers.
Statement without_numbers(Statement statement, const std::string& reason) {
  const bool algebra = statement.outcome == Outcome::by_algebra;
  statement.finding = fmt::format("No numbers: {}.{}", reason, algebra ? " The algebra needs no numbers." : "");
  statement.outcome = algebra ? Outcome::by_algebra : Outcome::no_numbers;
  return statement;
}

Statement unit_gain(const Source& source) {
  Statement statement{
      .name = "unit_gain",
      .claim =
          "With prior precision lambda = 1 everywhere, the Kalman gain is K = 1, which is the plain residual layer.",
      .source = "Remark \"Standard Transformer as a degenerate BFT\"",
      .numbers = {},
      .finding = {},
      .conclusion =
          "At lambda = 1, K = lambda_obs / (1 + lambda_obs), which is below 1 for every finite lambda_obs. The plain "
          "layer is K forced to 1, with equal precisions and without process noise.",
      .outcome = Outcome::by_algebra};
  const ByHead gain = source.by_head("summary/kalman_gain"),
               precision = source.by_head("summary/observation_precision");
  if (const std::string reason = other_estimator(source.reader.request()); !reason.empty())
    return without_numbers(std::move(statement), reason);
  if (!gain || !precision) return without_numbers(std::move(statement), gain ? precision.reason() : gain.reason());
  statement.numbers = {{"gain_mean", "K at lambda = 1, mean over heads", mean(*gain)},
                       {"gain_min", "smallest K of a head", least(*gain)},
                       {"gain_max", "largest K of a head", largest(*gain)},
                       {"precision_mean", "lambda_obs, mean over heads, 1/value^2", mean(*precision)}};
  statement.finding = fmt::format("At lambda = 1, K is {:.3f} on average over {}; 1 - K ranges from {:.2g} to {:.2g}.",
                                  mean(*gain), counted(gain->size(), "head"), 1 - largest(*gain), 1 - least(*gain));
  return statement;
}

Statement prior_fades(const Source& source, const Maybe<std::vector<PriorShare>>& groups) {
  Statement statement{
      .name = "prior_fades",
      .claim = "If n_eff is much larger than nu, the prior contributes negligibly to the observation variance.",
      .source = "Appendix on the REML estimator, \"Regimes\"",
      .numbers = {},
      .finding = {},
      .conclusion =
          "S is a weighted mean and not a sum, so nu sigma0^2 / (S + nu sigma0^2) does not contain n_eff: the prior "
          "becomes negligible only if S is large. If the variance of the values is sigma0^2, the estimate is nearly "
          "twice the truth at any n_eff (1.96 times at n_eff = 80). A prior of nu observations would be weighed "
          "against n_eff S.",
      .outcome = Outcome::by_algebra};
  if (!groups) return without_numbers(std::move(statement), groups.reason());
  const PriorShare& top = groups->back();
  statement.numbers = {{"n_eff", "n_eff of the heads with the largest n_eff", top.n_eff},
                       {"prior_share", "the prior's share of S + nu sigma0^2 at these heads", top.share},
                       {"fading_share", "the share if the prior counted as nu observations", top.fading},
                       {"low_n_eff", "n_eff of the heads with the smallest n_eff", groups->front().n_eff},
                       {"low_prior_share", "the prior's share at these heads", groups->front().share},
                       {"prior_variance", "sigma0^2 = 1 / d_k, value^2", source.prior_variance()}};
  statement.finding = fmt::format(
      "At the {} with the largest n_eff ({:.1f} on average) the prior is {}% of S + nu sigma0^2; a prior of nu "
      "observations would be {}%.",
      counted(top.heads, "head"), top.n_eff, two_digits(100 * top.share), two_digits(100 * top.fading));
  if (top.share < small_share) {
    statement.finding += fmt::format(
        " This share is small because S = {:.3g} is far above sigma0^2 = {:.3g} in this model, not because n_eff is "
        "large.",
        top.residual, source.prior_variance());
  }
  return statement;
}

Statement value_variance(const Source& source) {
  Statement statement{
      .name = "value_variance",
      .claim =
          "Value coordinates have variance 1/d_k (Xavier initialisation), so sigma0^2 = 1/d_k has the right scale.",
      .source = "Appendix on the REML estimator, \"Choice of hyperparameters\"",
      .numbers = {},
      .finding = {},
      .conclusion =
          "A coordinate of W_V h is a sum of d terms. Under Xavier initialisation its variance is about 1 if the "
          "coordinates of h have unit variance. A trained model has the variance that it has learnt.",
      .outcome = Outcome::measured};
  const ByHead variance = source.by_kv_head("values/variance");
  if (!variance) return without_numbers(std::move(statement), variance.reason());
  std::vector<double> ratio = *variance;
  for (double& value : ratio) value /= source.prior_variance();
  statement.numbers = {
      {"variance_mean", "variance of the values over the keys of a chunk, mean over dimensions and KV heads, value^2",
       mean(*variance)},
      {"ratio_min", "smallest ratio of this variance to 1/d_k at a KV head", least(ratio)},
      {"ratio_median", "median ratio over KV heads", median(ratio)},
      {"ratio_max", "largest ratio", largest(ratio)}};
  statement.finding = fmt::format(
      "The variance of the values is {:.3g} times 1/d_k in the median over {}, and {:.3g} to {:.3g} times in single "
      "heads.",
      median(ratio), counted(ratio.size(), "KV head"), least(ratio), largest(ratio));
  return statement;
}

Statement alignment(const Source& source) {
  Statement statement{.name = "alignment",
                      .claim =
                          "The average of values with random Gaussian directions is nearly as long as the values (c "
                          "near 1 in the lemma).",
                      .source = "Remark after Lemma \"Sink necessity at K = 1\"",
                      .numbers = {},
                      .finding = {},
                      .conclusion =
                          "For independent directions with mean 0, the mean square norm of the average is sum p^2 = "
                          "1/n_eff times theirs, so its length is about 1/sqrt(n_eff) of theirs. It is longer only if "
                          "the values share a direction.",
                      .outcome = Outcome::by_algebra};
  const ByHead average = source.by_head("summary/without_first_norm"),
               count = source.by_head("summary/without_first_n_eff"), norm = source.other_norms();
  for (const ByHead* part : {&average, &count, &norm}) {
    if (!*part) return without_numbers(std::move(statement), part->reason());
  }
  std::vector<double> ratio, orthogonal;
  std::size_t nearer = 0;
  for (std::size_t i = 0; i < norm->size(); ++i) {
    ratio.push_back((*average)[i] / (*norm)[i]);
    orthogonal.push_back(1 / std::sqrt((*count)[i]));
    nearer += std::abs(std::log(ratio.back() / orthogonal.back())) < std::abs(std::log(ratio.back())) ? 1 : 0;
  }
  if (!std::isfinite(mean(ratio))) return without_numbers(std::move(statement), "all values of a head are zero");
  statement.numbers = {{"ratio_mean", "||vbar|| divided by the mean norm of the values, mean over heads", mean(ratio)},
                       {"ratio_min", "smallest such ratio of a head", least(ratio)},
                       {"ratio_max", "largest such ratio of a head", largest(ratio)},
                       {"orthogonal_mean", "1/sqrt(n_eff without key 0), mean over heads", mean(orthogonal)},
                       {"heads_nearer_orthogonal", "number of heads whose ratio is nearer to 1/sqrt(n_eff) than to 1",
                        static_cast<double>(nearer)}};
  statement.finding = fmt::format(
      "||vbar|| is {:.3f} times the mean norm of the values on average over heads ({:.3f} to {:.3f}), and "
      "1/sqrt(n_eff) is {:.3f} on average; {} of {} {} nearer to 1/sqrt(n_eff) than to 1.",
      mean(ratio), least(ratio), largest(ratio), mean(orthogonal), nearer, counted(ratio.size(), "head"),
      nearer == 1 ? "is" : "are");
  return statement;
}

/// Parameters of a network width -> 16 -> 1 with biases.
double precision_network_parameters(double width) {
  return width * 16 + 16 + 16 + 1;
}

Statement network_size(const Source& source) {
  const double width = static_cast<double>(source.reader.heads() * source.reader.request().head_dim);
  return {.name = "network_size",
          .claim = "The network that computes a precision from an item's embedding has about 800 parameters.",
          .source = "Section on initial precision; Appendix, \"Parameter count\"",
          .numbers = {{"at_64", "parameters at d = 64", precision_network_parameters(64)},
                      {"at_attention_width", "parameters at this model's heads x head_dim",
                       precision_network_parameters(width)}},
          .finding = fmt::format(
              "Two layers with 16 hidden units have 16 d + 33 parameters: {:.0f} at d = 64, and {:.0f} at d = {:.0f}, "
              "this model's heads x head_dim (a run does not store the width of the residual stream).",
              precision_network_parameters(64), precision_network_parameters(width), width),
          .conclusion = "1,057 at the width of the paper's experiments; 800 would need d = 48.",
          .outcome = Outcome::by_algebra,
          .on_recommenders = true};
}

Statement layer_size() {
  constexpr double floats = 64 + 16 * (64 + 256), layer = 4 * 64 * 64 + 2 * 64 * 256;
  return {.name = "layer_size",
          .claim = "About 5,200 floats per layer are well under 0.1% of a typical Transformer.",
          .source = "Appendix, \"Parameter count\"",
          .numbers = {{"floats", "process noise and SVD cache at d = 64, r = 16, d_ff = 256", floats},
                      {"layer_weights", "weights of a SASRec layer of that size", layer},
                      {"share", "their ratio", floats / layer}},
          .finding = fmt::format("64 + 16 (64 + 256) = {:.0f} floats are added to a layer of {:.0f} weights: {:.1f}%.",
                                 floats, layer, 100 * floats / layer),
          .conclusion =
              "About a tenth of a SASRec layer. The share of a whole model depends on its item table, so count it for "
              "the model.",
          .outcome = Outcome::by_algebra,
          .on_recommenders = true};
}

Statement five_axes() {
  return {.name = "five_axes",
          .claim = "Attention weights with a precision for each dimension need a tensor with five axes.",
          .source = "Section on the algorithm; table of design choices",
          .numbers = {},
          .finding = "A sweep does not run layers with precisions.",
          .conclusion =
              "The weights factorise: with L the head's slice of the precisions, the estimate is P (L o v) / (P L), in "
              "O(T) memory. It can be checked in an implementation of such a layer, against the direct form on a short "
              "text.",
          .outcome = Outcome::by_algebra};
}

Statement user_count() {
  return {.name = "user_count",
          .claim = "The Sports data set has 25,598 users.",
          .source = "Table of data sets",
          .numbers = {},
          .finding = "A sweep does not read recommendation data.",
          .conclusion = "The usual 5-core version has 35,598. It can be checked by counting the users in the data.",
          .outcome = Outcome::not_measured,
          .on_recommenders = true};
}

}  // namespace

std::string_view name_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::by_algebra:
      return "false by algebra";
    case Outcome::measured:
      return "measured, no ruling";
    case Outcome::no_numbers:
      return "no numbers in this run";
    case Outcome::not_measured:
      return "not measured by a sweep";
  }
  ASSERT(false, "outcome {} is not one of ours", static_cast<int>(outcome));
}

Maybe<std::vector<PriorShare>> prior_shares(const runfile::RunReader& reader, const Options& options) {
  using Result = Maybe<std::vector<PriorShare>>;
  const Source source{reader, sink_lengths(reader, options)};
  const ByHead n_eff = source.by_head("summary/n_eff"), residual = source.by_head("summary/residual");
  if (!n_eff || !residual) return Result::none(n_eff ? residual.reason() : n_eff.reason());

  std::vector<std::size_t> order(n_eff->size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return (*n_eff)[a] < (*n_eff)[b]; });
  const std::size_t groups = std::min(max_prior_groups, order.size());
  const double prior = prior_observations * source.prior_variance();
  std::vector<PriorShare> result;
  for (std::size_t group = 0; group < groups; ++group) {
    std::vector<double> counts, residuals, shares, fading;
    for (std::size_t i = group * order.size() / groups; i < (group + 1) * order.size() / groups; ++i) {
      const double n = (*n_eff)[order[i]], s = (*residual)[order[i]];
      counts.push_back(n);
      residuals.push_back(s);
      shares.push_back(prior / (s + prior));
      fading.push_back(prior / (n * s + prior));
    }
    result.push_back({counts.size(), mean(counts), mean(residuals), mean(shares), mean(fading)});
  }
  return result;
}

std::vector<Statement> statements(const runfile::RunReader& reader, const Options& options) {
  const Source source{reader, sink_lengths(reader, options)};
  return {unit_gain(source),      prior_fades(source, prior_shares(reader, options)),
          value_variance(source), network_size(source),
          layer_size(),           five_axes(),
          alignment(source),      user_count()};
}

OrderedJson to_json(const Statement& statement) {
  OrderedJson json{{"name", statement.name},
                   {"claim", statement.claim},
                   {"source", statement.source},
                   {"numbers", OrderedJson::object()}};
  for (const Quantity& number : statement.numbers) put(json["numbers"], number.name, number.value);
  json["finding"] = statement.finding;
  json["conclusion"] = statement.conclusion;
  json["outcome"] = name_of(statement.outcome);
  return json;
}

}  // namespace gainlens::analyses
