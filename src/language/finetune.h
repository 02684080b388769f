#pragma once

#include "experiment/experiment.h"
#include "language/finetune_request.h"
#include "training/replicas.h"

#include <vector>

namespace gainlens::language {

/// @throws InvalidArgument  as check_request() and trained_lora(); a model that cannot be trained, is too
///     large for memory, or has a part that a filter does not know
/// @throws RunFailed  as training::train() and generation::generate()
///
/// Every job is one training of all weights, or of an adapter: OUT/ARM/npN/seed-S holds the checkpoint or the adapter
/// with the least validation loss, predictions.jsonl with the answer to each test question, and training/ with the
/// state to continue from. Jobs of one seed see the same rows in the same order. OUT/run.h5 has exact match and F1 of
/// each question.
///
/// Several processes, which all call this function, share every training or the trainings (FinetuneRequest::spread). In
/// a shared training each takes a part of the rows of every step and of every evaluation, and holds its share of the
/// optimiser's moments; the losses are those of one process to rounding. They need a common file system.
/// @returns  all trainings, for rank 0; none for the other processes
std::vector<experiment::Outcome> finetune(const FinetuneRequest& request, training::Replicas& replicas);
std::vector<experiment::Outcome> finetune(const FinetuneRequest& request);

}  // namespace gainlens::language
