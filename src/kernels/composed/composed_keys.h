#pragma once

#include "kernels/attention_sequences.h"

namespace gainlens::kernels {

/// `kernel` and then, where the options ask for them, `key_mean` and `key_queries`. These come from a second pass over
/// blocks of the scores by library calls, on any device. It takes as many operations as the products of queries and
/// keys.
SequenceKernel with_key_means(SequenceKernel kernel);

/// `kernel` and then, where the options ask for them, `top_key` and `top_weight`. These come from a second pass over
/// blocks of the scores by library calls, on any device, which sorts every row of a block.
SequenceKernel with_top_keys(SequenceKernel kernel);

}  // namespace gainlens::kernels
