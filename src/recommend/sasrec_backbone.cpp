#include "recommend/sasrec_backbone.h"

#include "core/counted.h"
#include "recommend/sasrec.h"
#include "recommend/sasrec_foreign.h"
#include "recommend/sasrec_weights.h"
#include "recommend/stored_arm.h"

#include <memory>
#include <string>

namespace gainlens::recommend {
namespace {

// Functions of both backbones: SASRec, and BERT4Rec, which is bidirectional.

template <bool bidirectional>
SasRecConfig config_of(const ModelPlan& plan) {
  SasRecConfig config;
  config.bidirectional = bidirectional;
  set_knobs(sasrec_knobs(bidirectional), config, plan.options, "settings");
  config.items = plan.items;
  config.arm = plan.arm;
  if (plan.arm != Arm::plain) config.filter = plan.filter;  // a plain checkpoint does not store what it does not read
  return config;
}

template <bool bidirectional>
std::unique_ptr<Backbone> make(const ModelPlan& plan, std::uint64_t seed) {
  const SasRecConfig config = config_of<bidirectional>(plan);
  return std::make_unique<SasRec>(config, initial_sasrec_weights(config, seed));
}

template <bool bidirectional>
std::unique_ptr<Backbone> open(const Json& document, const std::string& where, const WeightSource& source) {
  const SasRecConfig config = parse_sasrec_config(document, where, bidirectional);
  return std::make_unique<SasRec>(config, stored_sasrec_weights(config, source));
}

template <auto load>
ForeignModel open_foreign(const std::filesystem::path& path, const ForeignOptions& options) {
  ForeignSasRec read = load(path, options);
  return {std::make_unique<SasRec>(read.model.config, std::move(read.model.weights)), std::move(read.items)};
}

template <bool bidirectional>
ModelNumbers memory(const ModelPlan& plan) {
  const SasRecConfig config = config_of<bidirectional>(plan);
  const auto width = static_cast<double>(config.width), inner = static_cast<double>(config.inner_width);
  const auto layers = static_cast<double>(config.layers), items = static_cast<double>(config.items);
  const double embedding = (items + static_cast<double>(config.positions)) * width;
  const double layer = 4 * width * width + 2 * width * inner;
  // What a layer keeps for its backward pass, and the gradients on their way. Fitted to measured peaks: with all users
  // of Beauty in one batch (128,031 positions) the estimate is 1.31 GB, the peak 1.27 GB above that of the program.
  // A filter keeps moments, precisions, the Jacobian and slopes too, with their gradients.
  const double filter_numbers = config.armed_filter().has_gain() ? 10 * width + 2 * inner : 0;
  return {// Parameter, two moments, gradient; the embedding has the gradients of its two uses and their sum.
          .parameters = 6 * embedding + 4 * layers * layer,
          .one_position = layers * (8 * width + 2 * inner + filter_numbers) + (bidirectional ? 12 : 6) * width};
}

template <bool bidirectional>
BackboneKind backbone(const std::string& help) {
  return {
      .name = sasrec_name(bidirectional),
      .help = help,
      .knobs = erased_knobs(sasrec_knobs(bidirectional)),
      .check = [](const ModelPlan& plan, const std::string& where) { check(config_of<bidirectional>(plan), where); },
      .view = [](const ModelPlan& plan) { return view_of(config_of<bidirectional>(plan)); },
      .make = make<bidirectional>,
      .open = open<bidirectional>,
      .memory = memory<bidirectional>};
}

}  // namespace

BackboneKind sasrec_backbone() {
  BackboneKind kind = backbone<false>("SASRec, a causal transformer over the items of a user (Kang and McAuley, 2018)");
  kind.layouts = {{"iclrec", open_foreign<load_iclrec>},
                  {"recbole", open_foreign<load_recbole>},
                  {"pmixer", open_foreign<load_pmixer>}};
  // Source: docs/recommend-results.md, "Measured results".
  kind.presets = {{"tuned",
                   "backbone sasrec: paper with norms after the sums, a stronger baseline on Musical Instruments",
                   {{"norm", "post"}, {"embedding_norm", true}}}};
  return kind;
}

BackboneKind bert4rec_backbone() {
  return backbone<true>("BERT4Rec, that transformer in both directions, which learns hidden items (Sun et al., 2019)");
}

const BackboneKind& SasRec::kind() const {
  return backbone_named(sasrec_name(config_.bidirectional), "model");
}

PackedSequences pack(std::span<const std::span<const data::ItemId>> sequences, const SasRecConfig& config,
                     at::Device device) {
  std::vector<data::History> histories;
  for (const auto& items : sequences) histories.push_back({items, {}});
  return pack(histories, view_of(config), device);
}

std::vector<ModelFact> SasRec::facts() const {
  const SasRecConfig& config = config_;
  std::vector<ModelFact> facts = {
      {"arm", fmt::format("{}: {}", config.armed_filter().parts().name, config.armed_filter().parts().help),
       std::string(config.armed_filter().parts().name)},
      {"items", fmt::format("{}", config.items), config.items},
      {"layers", fmt::format("{}", config.layers), config.layers},
      {"heads", fmt::format("{} of {} dimensions", config.heads, config.head_dim()), config.heads},
      {"width", fmt::format("{}; {} neurons in the MLP", config.width, config.inner_width), config.width},
      {"history", fmt::format("the last {}", counted(config.positions, config.bidirectional ? "position" : "item")),
       config.positions}};
  const char* const norms = config.foreign.norm == ForeignParts::Norm::queries ? "before queries and MLP"
                            : config.norm == NormPlace::pre                    ? "before each part"
                                                                               : "after each sum";
  facts.push_back({"norms", norms, norms});
  if (config.arm == Arm::plain) return facts;
  facts.push_back({"filter", changed_options(config.filter), Json(knobs_to_json(bft::filter_knobs(), config.filter))});
  return facts;
}

}  // namespace gainlens::recommend
