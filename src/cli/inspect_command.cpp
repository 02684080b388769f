#include "cli/commands.h"
#include "cli/findings.h"
#include "cli/inspect_parts.h"
#include "core/error.h"
#include "models/checkpoint/compute_dtype.h"

#include <filesystem>
#include <memory>

namespace gainlens::cli {
namespace {

struct InspectArguments {
  std::string path;
  MemoryQuestion memory{"", "float32"};
};

bool looks_like_run(const std::filesystem::path& path) {
  return path.extension() == ".h5" || std::filesystem::exists(path / "run.h5") ||
         std::filesystem::exists(path / "request.json");
}

void inspect(const InspectArguments& arguments, bool json) {
  models::parse_dtype(arguments.memory.dtype);  // a misspelt option is no fault of the checkpoint's
  CHECK(std::filesystem::exists(arguments.path), "{}: no such file or folder", printable(arguments.path));
  Findings findings;
  try {
    if (looks_like_run(arguments.path)) {
      inspect_run(arguments.path, findings);
    } else {
      inspect_checkpoint(arguments.path, arguments.memory, findings);
    }
  } catch (const InvalidArgument& error) {
    findings.conclude(error.what());
    findings.print(json);
    throw;
  }
  findings.conclude("");
  findings.print(json);
}

}  // namespace

void add_inspect(CLI::App& app, const GlobalOptions& global, Action& action) {
  CLI::App* command = add_subcommand(
      app, "inspect", "What a checkpoint or a run holds, and whether it can be used (exit 2 if not)",
      "gainlens inspect MODEL --length 8k",
      "Reads headers and configuration, no weights: time and memory do not grow with the files. Sizes are those on "
      "disk;\n"
      "'weights' counts bytes and, in brackets, tensors of each type. What a GGUF file leaves out and gainlens fills "
      "in\n"
      "from what is known of the family stands under 'filled in'. --json lists the attention of every layer.");
  auto arguments = std::make_shared<InspectArguments>();
  command->add_option("path", arguments->path, "Checkpoint (folder or GGUF file), run folder or run.h5")->required();
  command->add_option("--length", arguments->memory.length,
                      "Context length to estimate memory at, in tokens (default: all of the model's positions)");
  command->add_option("--dtype", arguments->memory.dtype, "Compute dtype to estimate memory in")->capture_default_str();
  command->callback(
      [arguments, &global, &action] { action = [arguments, &global] { inspect(*arguments, global.json); }; });
}

}  // namespace gainlens::cli
