#include "architecture/include_graph.h"

#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

namespace gainlens::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

void write(const std::filesystem::path& path, const std::string& text) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path) << text;
}

TEST(IncludeGraph, LayersPointDownward) {
  EXPECT_THAT(forbidden_includes(GAINLENS_SOURCE_DIR), IsEmpty());
}

TEST(IncludeGraph, AnUpwardIncludeIsFound) {
  const TemporaryFolder root;
  write(root.path() / "src/kernels/a.h", "#pragma once\n#include \"core/error.h\"\n#include \"models/decoder.h\"\n");
  EXPECT_THAT(forbidden_includes(root.path()),
              ElementsAre("src/kernels/a.h:3: 'kernels' must not include 'models/decoder.h'"));
}

TEST(IncludeGraph, LibtorchInAReaderIsFound) {
  const TemporaryFolder root;
  write(root.path() / "src/formats/a.cpp", "#include <ATen/ATen.h>\n");
  write(root.path() / "analyses/b.cpp", "#  include <torch/torch.h>\n");
  EXPECT_THAT(forbidden_includes(root.path()),
              ElementsAre(HasSubstr("analyses/b.cpp:1: 'analyses' must not include libtorch"),
                          HasSubstr("src/formats/a.cpp:1: 'formats'")));
}

TEST(IncludeGraph, AFolderWithoutAPlaceIsFound) {
  const TemporaryFolder root;
  write(root.path() / "src/utilities/a.h", "#include <vector>\n");
  EXPECT_THAT(forbidden_includes(root.path()), ElementsAre(HasSubstr("folder 'utilities' has no place")));
}

TEST(IncludeGraph, NoTwoLayersIncludeEachOther) {
  for (const auto& [name, layer] : layers()) {
    for (const auto& lower : layer.below)
      EXPECT_FALSE(layers().at(lower).below.contains(name)) << name << " and " << lower;
  }
}

}  // namespace
}  // namespace gainlens::testing
