#pragma once

#include "experiment/experiment.h"
#include "language/finetune_request.h"

#include <vector>

namespace gainlens::language {

/// @throws InvalidArgument  as check_request() and trained_lora(); a model that cannot be trained, or has a part that a
/// filter does not know (experts, linear attention, quantised in
///     its own format, no end of a text, too large for memory)
/// @throws RunFailed  as training::train() and generation::generate()
///
/// Every job is one training of all weights, or of an adapter: OUT/ARM/npN/seed-S holds the checkpoint or the adapter
/// with the least validation loss, predictions.jsonl with the answer to each test question, and training/ with the
/// state to continue from. Jobs of one seed see the same rows in the same order. OUT/run.h5 has exact match and F1 of
/// each question.
std::vector<experiment::Outcome> finetune(const FinetuneRequest& request);

}  // namespace gainlens::language
