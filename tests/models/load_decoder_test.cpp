#include "models/checkpoint/load_decoder.h"

#include "core/error.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace gainlens::models {
namespace load_decoder_test {

TEST(LoadDecoder, ARealCheckpointRunsInTheDtypeAsked) {
  const auto model = load_decoder(GAINLENS_SOURCE_DIR "/data/demo/gated", {.dtype = at::kDouble});
  const at::Tensor ids = at::arange(16, at::kLong).view({1, 16});
  const at::Tensor logits = model->unembed(model->forward({ids}, {}, {}).hidden);
  EXPECT_EQ(logits.scalar_type(), at::kDouble);
  EXPECT_EQ(logits.size(1), 16);
  EXPECT_TRUE(at::isfinite(logits).all().item<bool>());
}

TEST(LoadDecoder, StreamedWeightsGiveTheSameBits) {
  const std::filesystem::path goldens = GAINLENS_SOURCE_DIR "/tests/golden";
  for (const char* name : {"models/llama", "models/gpt-oss", "gguf/gpt2.gguf", "gguf/llama-quantised.gguf"}) {
    const auto held = load_decoder(goldens / name), streamed = load_decoder(goldens / name, {.stream = true});
    const hooks::Tokens tokens{at::arange(60, at::kLong).remainder(50).view({1, 60})};
    EXPECT_TRUE(at::equal(held->forward(tokens, {}, {}).hidden, streamed->forward(tokens, {}, {}).hidden)) << name;
  }
}

TEST(LoadDecoder, NoCheckpointIsAnError) {
  EXPECT_THROW(load_decoder("/nonexistent"), InvalidArgument);
}

}  // namespace load_decoder_test
}  // namespace gainlens::models
