#include "bft/filter_options.h"

#include "core/check.h"

#include <vector>

namespace gainlens::bft {
namespace {

#define GAINLENS_MEMBER(name) ([](FilterOptions & options) -> auto& { return options.name; })

std::vector<Knob<FilterOptions>> make_knobs() {
  using Owner = FilterOptions;
  std::vector<std::string> estimators;
  estimators.reserve(std::size(all_estimators));
  for (const Estimator estimator : all_estimators) estimators.emplace_back(name_of(estimator));
  // absent_is: what the layer did before the option existed. For options of the first version, the paper's value.
  return {
      choice_knob<Owner>("estimator", "of the variance of what attention observes", estimators,
                         GAINLENS_MEMBER(estimator))
          .absent_is("reml"),
      real_knob<Owner>("prior_strength", "nu, in observations", GAINLENS_MEMBER(prior_strength), {0, 1e15})
          .absent_is(1),
      real_knob<Owner>("prior_variance", "sigma0^2; 0: 1/d, d the dimensions of a head",
                       GAINLENS_MEMBER(prior_variance), {0, 1e15})
          .absent_is(0),
      real_knob<Owner>("score_noise", "omega, standard deviation of a score; delta_weight_free",
                       GAINLENS_MEMBER(score_noise), {0, 1e6})
          .absent_is(0),
      choice_knob<Owner>("kriging", "precisions in the weights of attention", {"scalar", "per_dimension"},
                         GAINLENS_MEMBER(kriging))
          .absent_is("scalar"),
      choice_knob<Owner>("predict", "how precision passes the MLP", {"jacobian", "discount", "decay", "prior"},
                         GAINLENS_MEMBER(predict))
          .absent_is("jacobian"),
      choice_knob<Owner>("jacobian", "of the MLP", {"low_rank", "exact", "none"}, GAINLENS_MEMBER(jacobian))
          .absent_is("low_rank"),
      whole_knob<Owner>("jacobian_rank", "singular values of the low-rank form", GAINLENS_MEMBER(jacobian_rank), 1)
          .absent_is(16),
      flag_knob<Owner>("norm_jacobian", "the Jacobian is that of the norm too", GAINLENS_MEMBER(norm_jacobian))
          .absent_is(false),
      flag_knob<Owner>("running_jacobian", "evaluation takes the running average of (1 + J)^2",
                       GAINLENS_MEMBER(running_jacobian))
          .absent_is(true),
      real_knob<Owner>("discount", "gamma of predict discount", GAINLENS_MEMBER(discount), {1e-6, 1}).absent_is(0.95),
      real_knob<Owner>("most_process_noise", "Q_max; 0: no process noise", GAINLENS_MEMBER(most_process_noise),
                       {0, 1e15})
          .absent_is(1),
      real_knob<Owner>("process_noise_start", "Q is softplus(this) Q_max before training",
                       GAINLENS_MEMBER(process_noise_start), {-100, 100})
          .absent_is(-9),
      choice_knob<Owner>("initial_precision", "of items, before the first layer", {"content", "table", "count", "em"},
                         GAINLENS_MEMBER(initial_precision))
          .absent_is("content"),
      real_knob<Owner>("initial_gain", "K0", GAINLENS_MEMBER(initial_gain), {1e-6, 1}).absent_is(0.9),
      flag_knob<Owner>("initial_gain_of_data", "K0 is met on the first batch (true) or at 2 d (false)",
                       GAINLENS_MEMBER(initial_gain_of_data))
          .absent_is(true),
      real_knob<Owner>("initial_range", "tau_range before training; 0: it follows from K0",
                       GAINLENS_MEMBER(initial_range), {0, 1e15})
          .absent_is(0),
      flag_knob<Owner>("recency_decay", "scores fall with distance at a learned rate", GAINLENS_MEMBER(recency_decay))
          .absent_is(true),
      choice_knob<Owner>("decay_owner", "each layer or each head learns its rate of distance", {"layer", "head"},
                         GAINLENS_MEMBER(decay_owner))
          .absent_is("layer"),
      real_knob<Owner>("initial_decay", "rho before training", GAINLENS_MEMBER(initial_decay), {1e-6, 1})
          .absent_is(0.99),
      flag_knob<Owner>("output_projection", "W_O after the gain; the paper's layer has none",
                       GAINLENS_MEMBER(output_projection))
          .absent_is(false),
      choice_knob<Owner>("gain_place", "the gain acts before W_O or after it", {"before", "after"},
                         GAINLENS_MEMBER(gain_place))
          .absent_is("before"),
      real_knob<Owner>("least_precision", "lambda_min", GAINLENS_MEMBER(least_precision), {1e-15, 1e15})
          .absent_is(1e-3),
      real_knob<Owner>("most_precision", "lambda_max", GAINLENS_MEMBER(most_precision), {1e-15, 1e15}).absent_is(100),
      whole_knob<Owner>("warm_up", "steps or epochs before the filter acts", GAINLENS_MEMBER(warm_up), 0).absent_is(50),
      choice_knob<Owner>("warm_up_unit", "of the warm-up", {"steps", "epochs"}, GAINLENS_MEMBER(warm_up_unit))
          .absent_is("steps"),
      choice_knob<Owner>("warm_up_form", "the filter begins at once (step) or little by little (blend)",
                         {"step", "blend"}, GAINLENS_MEMBER(warm_up_form))
          .absent_is("step"),
  };
}

#undef GAINLENS_MEMBER

/// What float32 holds with digits to spare.
constexpr double min_positive = 1e-15;

}  // namespace

EstimatorOptions FilterOptions::estimator_options() const {
  EstimatorOptions options;
  options.prior_strength = prior_strength;
  if (prior_variance > 0) options.prior_variance = prior_variance;
  if (score_noise > 0) options.score_noise = score_noise;
  options.least_precision = least_precision;
  options.most_precision = most_precision;
  return options;
}

std::span<const Knob<FilterOptions>> filter_knobs() {
  static const std::vector<Knob<FilterOptions>> made = make_knobs();
  return made;
}

std::string why_idle(const FilterOptions& options, std::string_view key) {
  const OrderedJson all = knobs_to_json(filter_knobs(), options);
  const auto is = [&](const char* other) { return fmt::format("'{}' is {}", other, all.at(other).dump()); };
  const bool from_gain = options.initial_precision != InitialPrecision::table;  // em starts from it, with a prior
  const bool has_items = options.initial_precision == InitialPrecision::em;     // whose prior follows from K0
  const bool has_prior = options.estimator != Estimator::reml_naive && options.estimator != Estimator::sandwich &&
                         options.estimator != Estimator::delta;
  if ((key == "prior_strength" || key == "prior_variance") && !has_prior) return is("estimator");
  if (key == "score_noise" && options.estimator != Estimator::delta_weight_free) return is("estimator");
  const bool is_of_jacobian =
      key == "jacobian" || key == "jacobian_rank" || key == "norm_jacobian" || key == "running_jacobian";
  if (is_of_jacobian && options.predict == Predict::prior) return is("predict");
  if (key == "jacobian_rank" && options.jacobian != JacobianForm::low_rank) return is("jacobian");
  if (key == "running_jacobian" && options.jacobian == JacobianForm::none) return is("jacobian");
  if (key == "discount" && options.predict != Predict::discount && options.predict != Predict::decay)
    return is("predict");
  if ((key == "most_process_noise" || key == "process_noise_start") && options.predict != Predict::jacobian)
    return is("predict");
  if (key == "process_noise_start" && options.most_process_noise == 0) return is("most_process_noise");
  if ((key == "initial_gain" || key == "initial_gain_of_data" || key == "initial_range") && !from_gain)
    return is("initial_precision");
  if ((key == "initial_gain" || key == "initial_gain_of_data") && options.initial_range > 0 && !has_items)
    return is("initial_range");
  if ((key == "initial_decay" || key == "decay_owner") && !options.recency_decay) return is("recency_decay");
  if ((key == "warm_up_form" || key == "warm_up_unit") && options.warm_up == 0) return is("warm_up");
  if (key == "gain_place" && !options.output_projection) return is("output_projection");
  return "";
}

void check(const FilterOptions& options, const std::string& where) {
  CHECK(options.least_precision < options.most_precision,
        "{}: 'least_precision' is {} and 'most_precision' is {}; it must be larger", where, options.least_precision,
        options.most_precision);
  CHECK(options.prior_strength == 0 || options.prior_strength >= min_positive,
        "{}: 'prior_strength' is {}; must be 0, or at least {}", where, options.prior_strength, min_positive);
  CHECK(options.prior_variance == 0 || options.prior_variance >= min_positive,
        "{}: 'prior_variance' is {}; must be 0 (1/d), or at least {}", where, options.prior_variance, min_positive);
  CHECK(options.estimator != Estimator::delta_weight_free || options.score_noise > 0,
        "{}: 'estimator' delta_weight_free needs 'score_noise' above 0", where);
  check(options.estimator_options(), options.estimator);
  CHECK(options.estimator != Estimator::sandwich || options.initial_precision != InitialPrecision::em,
        "{}: 'estimator' sandwich with 'initial_precision' em; em needs a variance with a likelihood, such as reml",
        where);
  CHECK(options.kriging == Kriging::scalar || options.estimator == Estimator::reml ||
            options.estimator == Estimator::reml_naive || options.estimator == Estimator::reml_conjugate,
        "{}: 'kriging' per_dimension with 'estimator' {}; it needs reml, reml_naive or reml_conjugate", where,
        name_of(options.estimator));
  const bool undefined_alone =
      options.estimator == Estimator::reml_naive ||
      ((options.estimator == Estimator::reml_conjugate || options.estimator == Estimator::kish) &&
       options.prior_strength == 0);
  CHECK(!undefined_alone, "{}: 'estimator' {}{}: the variance of a query that sees one key is 0/0; choose {}", where,
        name_of(options.estimator), options.estimator == Estimator::reml_naive ? "" : " with 'prior_strength' 0",
        options.estimator == Estimator::reml_naive ? "another" : "reml or give a prior");
  CHECK(!options.norm_jacobian || options.jacobian == JacobianForm::exact, "{}: 'norm_jacobian' needs 'jacobian' exact",
        where);
}

}  // namespace gainlens::bft
