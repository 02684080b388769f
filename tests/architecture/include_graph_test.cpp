#include "architecture/include_graph.h"

#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

namespace gainlens::testing {
namespace include_graph_test {

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

TEST(IncludeGraph, LibrariesWithoutLibtorchReachNone) {
  EXPECT_THAT(plain_libraries_with_torch(GAINLENS_SOURCE_DIR), IsEmpty());
}

TEST(IncludeGraph, LibtorchBehindAHeaderOfAPlainLibraryIsFound) {
  const TemporaryFolder root;
  write(root.path() / "src/models/CMakeLists.txt",
        "gainlens_library(description\n  SOURCES config.cpp sizes.cpp\n  DEPENDS gainlens::core)\n"
        "gainlens_library(models TORCH SOURCES decoder.cpp)\n");
  write(root.path() / "src/models/config.cpp", "#include <vector>\n#include \"models/weights.h\"\n");
  write(root.path() / "src/models/sizes.cpp", "#include \"core/check.h\"\n");
  write(root.path() / "src/models/decoder.cpp", "#include \"models/weights.h\"\n");
  write(root.path() / "src/models/weights.h", "#pragma once\n#include <ATen/core/Tensor.h>\n");
  write(root.path() / "src/core/check.h", "#pragma once\n#include <c10/util/Logging.h>\n");
  EXPECT_THAT(plain_libraries_with_torch(root.path()),
              ElementsAre("description: src/models/config.cpp > src/models/weights.h > ATen/core/Tensor.h"));
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

}  // namespace include_graph_test
}  // namespace gainlens::testing
