// Memory grows with the number of tokens, and not with its square.
#include "interventions/document_passes.h"
#include "interventions/gradient_pass.h"
#include "kernels/counted_memory.h"
#include "models/random_decoder.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>

#include <functional>
#include <vector>

namespace gainlens::interventions {
namespace memory_test {

models::Decoder model_of_long_texts() {
  models::DecoderConfig config = gainlens::testing::small_config();
  config.max_positions = 4096;
  return gainlens::testing::random_decoder(config, at::kFloat);
}

std::vector<std::int32_t> document(std::int64_t length) {
  std::vector<std::int32_t> ids;
  for (std::int64_t i = 0; i < length; ++i) ids.push_back(static_cast<std::int32_t>((i * 17 + i / 50) % 50));
  return ids;
}

/// With a constant part and a part in proportion to T, the second doubling adds twice what the first one adds; with a
/// part in T^2 it adds four times as much.
void expect_linear(const std::function<void(std::int64_t)>& work) {
  const auto peak = [&](std::int64_t length) { return kernels::testing::peak_bytes_of([&] { work(length); }); };
  const auto shortest = peak(512), middle = peak(1024), longest = peak(2048);
  EXPECT_GT(shortest, 0);
  EXPECT_LT(static_cast<double>(longest - middle), 2.3 * static_cast<double>(middle - shortest));
}

TEST(MemoryOfInterventions, IsLinearInTheNumberOfTokens) {
  models::Decoder model = model_of_long_texts();
  expect_linear([&](std::int64_t length) {
    const c10::InferenceMode inference;
    std::vector<Arm> arms;
    for (const char* text : {"blocks.1.attn.hook_z[head=0]=zero", "blocks.1.attn.hook_v[head=1]=0.5",
                             "blocks.1.hook_resid_pre[position=9]=zero", "blocks.1.hook_mlp_out=zero"})
      arms.push_back(place_arm(parse_intervention(text), model.config(), model.sites(), length, at::kFloat));
    std::vector<const Arm*> all;
    for (const Arm& arm : arms) all.push_back(&arm);
    DocumentPasses(model, document(length), {1}, {}).run(all, {}, {});
  });
}

TEST(MemoryOfInterventions, IsLinearWithGradientsToo) {
  models::Decoder model = model_of_long_texts();
  expect_linear([&](std::int64_t length) {
    GradientPass(model, document(length), {"blocks.0.attn.hook_z", "blocks.1.hook_resid_pre"}, {}, {});
  });
}

}  // namespace memory_test
}  // namespace gainlens::interventions
