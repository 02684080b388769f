#include "interventions/measured_decoder.h"

#include <gtest/gtest.h>

namespace gainlens::interventions {
namespace measured_decoder_test {

struct Options {
  at::Device device;
};

TEST(AddDevice, NamesTheKindOfAGpuAlone) {
  Json request = Json::object();
  add_device(Options{at::kCPU}, request);
  EXPECT_TRUE(request.empty());
  add_device(Options{{at::kCUDA, 1}}, request);
  EXPECT_EQ(request.at("device"), "cuda");
}

}  // namespace measured_decoder_test
}  // namespace gainlens::interventions
