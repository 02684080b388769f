#include "recommend/training_settings.h"

namespace gainlens::recommend {

#define GAINLENS_MEMBER(name) ([](TrainingSettings & settings) -> auto& { return settings.name; })

const std::vector<Knob<TrainingSettings>>& training_knobs() {
  using Owner = TrainingSettings;
  static const std::vector<Knob<Owner>> knobs = {
      real_knob<Owner>("dropout", "of the embeddings and of what each part adds", GAINLENS_MEMBER(dropout), {0, 1}),
      real_knob<Owner>("attention_dropout", "of the attention weights", GAINLENS_MEMBER(attention_dropout), {0, 1}),
      choice_knob<Owner>("loss",
                         "cross-entropy over all items (full), or over sampled ones with log-Q correction (sampled)",
                         {"full", "sampled"}, GAINLENS_MEMBER(loss)),
      whole_knob<Owner>("negatives", "items drawn for each step; loss sampled", GAINLENS_MEMBER(negatives), 1),
      real_knob<Owner>("negative_exponent", "items are drawn in proportion to (training count)^this; loss sampled",
                       GAINLENS_MEMBER(negative_exponent), {0, 10}),
      real_knob<Owner>("learning_rate", "of Adam", GAINLENS_MEMBER(learning_rate), {0, 1e6, false}),
      real_knob<Owner>("precision_learning_rate", "factor on the learning rate of the parameters of precision",
                       GAINLENS_MEMBER(precision_learning_rate), {0, 1e6, false}),
      real_knob<Owner>("beta2", "of Adam", GAINLENS_MEMBER(beta2), {0, 1}),
      real_knob<Owner>("weight_decay", "of matrices and embeddings, decoupled", GAINLENS_MEMBER(weight_decay),
                       {0, 1e6}),
      real_knob<Owner>("max_gradient_norm", "larger gradients are scaled down to it; 0: never",
                       GAINLENS_MEMBER(max_gradient_norm), {}),
      whole_knob<Owner>("batch", "users of a step", GAINLENS_MEMBER(batch), 1),
      whole_knob<Owner>("epochs", "at most", GAINLENS_MEMBER(epochs), 1),
      whole_knob<Owner>("patience", "epochs without a better validation NDCG@10 before training stops; 0: never",
                        GAINLENS_MEMBER(patience), 0),
      whole_knob<Owner>("save_every", "epochs between saved states", GAINLENS_MEMBER(save_every), 1),
      flag_knob<Owner>("permute_popularity", "tau_base is permuted over the items: a placebo for k-by-frequency",
                       GAINLENS_MEMBER(permute_popularity))
          .absent_is(false),
      flag_knob<Owner>("keep_seen", "items that a user has seen stay candidates, in validation and test",
                       GAINLENS_MEMBER(keep_seen))
          .absent_is(false),
  };
  return knobs;
}

#undef GAINLENS_MEMBER

}  // namespace gainlens::recommend
