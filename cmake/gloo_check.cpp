// Whether the headers of gloo fit those of libtorch.
#define USE_C10D_GLOO
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

int main() {
  return c10d::ProcessGroupGloo::createDefaultDevice() == nullptr;
}
