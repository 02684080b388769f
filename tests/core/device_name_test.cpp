#include "core/device_name.h"

#include <gtest/gtest.h>

namespace gainlens {
namespace device_name_test {

TEST(DeviceNumber, IsThatOfTheGpu) {
  EXPECT_EQ(device_number("cpu"), -1);
  EXPECT_EQ(device_number("cuda"), 0);
  EXPECT_EQ(device_number("cuda:0"), 0);
  EXPECT_EQ(device_number("cuda:127"), 127);
}

TEST(DeviceNumber, OtherTextsNameNone) {
  for (const char* text : {"", "CPU", "cpu:0", "gpu", "cuda:", "cuda:-0", "cuda:-1", "cuda:+1", "cuda:1x", "cuda:128",
                           "cuda: 1", "cuda:99999999999", "cudaa", "mps"})
    EXPECT_FALSE(device_number(text)) << text;
}

}  // namespace device_name_test
}  // namespace gainlens
