// The estimate of memory is within 15% of the peak that the program reaches, in whatever part most of it is needed.
#include "core/json.h"
#include "core/quantity.h"
#include "models/checkpoint/checkpoint.h"
#include "models/checkpoint/memory_needed.h"
#include "models/checkpoint/save_checkpoint.h"
#include "models/decoder/decoder_weights.h"
#include "support/file_bytes.h"
#include "support/program.h"
#include "support/shared_data.h"

#include <ATen/ATen.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <string>
#include <vector>

namespace gainlens::testing {
namespace memory_test {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

/// What wait4 says about a process that was forked from this one. @returns its peak of resident memory, in bytes
std::uint64_t peak_of_child(const std::function<void()>& run) {
  const pid_t child = ::fork();
  if (child == 0) {
    try {
      run();
    } catch (const std::exception& error) {
      std::cerr << error.what() << '\n';
      ::_exit(1);
    }
    ::_exit(0);
  }
  int status = -1;
  struct rusage usage {};
  ::wait4(child, &status, 0, &usage);
  EXPECT_EQ(status, 0);
  return static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
}

/// As initial_weights(), which has no experts.
models::DecoderWeights random_weights(const models::DecoderConfig& config) {
  models::DecoderWeights weights;
  const auto fill = [](const std::vector<models::WeightField>& fields, const models::TensorsByField& tensors) {
    for (const models::WeightField& field : fields) {
      if (!field.wanted) continue;
      const bool norm = field.kind == models::WeightField::Kind::norm;
      *tensors.at(field.name) =
          norm ? at::ones(field.shape) : at::randn(field.shape) / std::sqrt(static_cast<double>(field.shape.back()));
    }
  };
  fill(outer_fields(config), tensors_by_field(weights));
  weights.layers.resize(static_cast<std::size_t>(config.layers));
  for (std::size_t layer = 0; layer < weights.layers.size(); ++layer)
    fill(layer_fields(config, static_cast<std::int64_t>(layer)), tensors_by_field(weights.layers[layer]));
  if (config.tied_head) weights.head = weights.embedding;
  return weights;
}

/// Writes a random checkpoint and ids. In a process of its own: a child inherits the peak of the process that it was
/// forked from, so this process stays small.
void write_model(const fs::path& folder, const OrderedJson& config, std::int64_t ids) {
  peak_of_child([&] {
    at::set_num_threads(1);
    at::manual_seed(1);  // which expert is the busiest depends on the weights
    const auto parsed = models::parse_decoder_config(Json(config), "test");
    save_checkpoint(folder, config, random_weights(parsed), at::kFloat);
    Json tokens = Json::array();
    for (std::int64_t i = 0; i < ids; ++i) tokens.push_back(i * 7 % parsed.vocabulary);
    std::ofstream(folder / "ids.json") << tokens.dump();
  });
}

/// @param instructions  value of GAINLENS_INSTRUCTIONS: the best instructions that the program may use; empty: all
std::uint64_t peak_of(const fs::path& model, const std::vector<std::string>& arguments,
                      const std::string& instructions = "") {
  const TemporaryFolder place;
  std::vector<std::string> words = {GAINLENS_PROGRAM,     "sweep",   model,       "--out",
                                    place.path() / "run", "--quiet", "--threads", "2"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return peak_of_child([&] {
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    ::setenv("XDG_CACHE_HOME", place.path().c_str(), 1);
    ::unsetenv("OMP_NUM_THREADS");
    if (!instructions.empty()) ::setenv("GAINLENS_INSTRUCTIONS", instructions.c_str(), 1);
    const int nothing = ::open("/dev/null", O_WRONLY);
    ::dup2(nothing, STDOUT_FILENO);
    ::execv(argv[0], argv.data());
    ::_exit(127);
  });
}

std::uint64_t peak_of_sweep(const fs::path& folder, std::vector<std::string> arguments,
                            const std::string& instructions = "") {
  arguments.insert(arguments.begin(), {"--tokens", folder / "ids.json"});
  return peak_of(folder, arguments, instructions);
}

/// A llama-like configuration, with some keys changed.
OrderedJson config_of(const OrderedJson& changes) {
  OrderedJson config = {{"model_type", "qwen3"},
                        {"num_hidden_layers", 1},
                        {"hidden_size", 64},
                        {"intermediate_size", 64},
                        {"num_attention_heads", 1},
                        {"num_key_value_heads", 1},
                        {"head_dim", 64},
                        {"vocab_size", 100},
                        {"max_position_embeddings", 32768},
                        {"tie_word_embeddings", true}};
  for (const auto& [key, value] : changes.items()) config[key] = value;
  return config;
}

struct Case {
  std::string name;
  OrderedJson config;
  models::MemoryOptions options;
  std::vector<std::string> arguments;  ///< besides --lengths, --samples and --dtype
  std::int64_t samples = 1;
  std::string instructions = "";  ///< as in peak_of: an older processor takes other kernels of products
};

const OrderedJson heavy = {{"num_hidden_layers", 3},   {"hidden_size", 1024},      {"intermediate_size", 8192},
                           {"num_attention_heads", 8}, {"num_key_value_heads", 8}, {"head_dim", 128}};
const OrderedJson wide_stream = {{"hidden_size", 3072}, {"num_attention_heads", 2}, {"num_key_value_heads", 2}};
const OrderedJson heads = {{"num_attention_heads", 24}, {"num_key_value_heads", 24}, {"head_dim", 128}};
const OrderedJson linear_attention = {{"model_type", "qwen3_next"},   {"num_hidden_layers", 2},
                                      {"full_attention_interval", 2}, {"num_experts", 0},
                                      {"hidden_size", 512},           {"linear_num_key_heads", 16},
                                      {"linear_num_value_heads", 32}, {"linear_key_head_dim", 128},
                                      {"linear_value_head_dim", 128}};
const OrderedJson latent_attention = {
    {"model_type", "deepseek_v2"}, {"num_hidden_layers", 2},     {"hidden_size", 512},
    {"num_attention_heads", 16},   {"num_key_value_heads", 16},  {"kv_lora_rank", 256},
    {"q_lora_rank", 384},          {"first_k_dense_replace", 2}, {"num_experts_per_tok", 1}};
const OrderedJson large_vocabulary = {{"hidden_size", 256}, {"vocab_size", 120000}};

std::vector<Case> cases() {
  const auto merged = [](OrderedJson a, const OrderedJson& b) {
    for (const auto& [key, value] : b.items()) a[key] = value;
    return a;
  };
  return {
      {"weights", heavy, {.positions = 64}, {}},
      {"weights in bfloat16", heavy, {.dtype = models::ComputeDtype::bfloat16, .positions = 64}, {}},
      {"streamed weights", heavy, {.positions = 64, .stream_weights = true}, {"--stream-weights"}},
      {"weights of the first layers", heavy, {.positions = 64, .stop_at_layer = 1}, {"--stop-at-layer", "1"}},
      {"streams of the layers", wide_stream, {.positions = 8192}, {}},
      {"streams in bfloat16", wide_stream, {.dtype = models::ComputeDtype::bfloat16, .positions = 8192}, {}},
      {"streams in float64", wide_stream, {.dtype = models::ComputeDtype::float64, .positions = 4096}, {}},
      {"streams without statistics", wide_stream, {.positions = 8192, .statistics = false}, {"--statistics", "none"}},
      {"composed kernel", heads, {.positions = 2048, .composed = true}, {"--kernel", "composed"}},
      {"kish", heads, {.positions = 2048, .composed = true}, {"--estimator", "kish"}},
      {"several samples", wide_stream, {.positions = 4096}, {}, 3},
      {"a group of chunks",
       merged(wide_stream, {{"num_hidden_layers", 2}}),
       {.positions = 4096, .positions_together = 5 * 4096, .stream_weights = true},
       {"--stream-weights"},
       5},
      {"heads", heads, {.positions = 4096}, {}},
      {"heads in bfloat16", heads, {.dtype = models::ComputeDtype::bfloat16, .positions = 4096}, {}},
      {"grouped queries",
       {{"num_attention_heads", 32}, {"num_key_value_heads", 2}, {"head_dim", 128}},
       {.positions = 4096},
       {}},
      {"gated heads",
       {{"num_attention_heads", 32},
        {"num_key_value_heads", 2},
        {"head_dim", 128},
        {"elementwise_attn_output_gate", true}},
       {.positions = 4096},
       {}},
      {"many heads",
       {{"num_attention_heads", 128}, {"num_key_value_heads", 16}, {"head_dim", 16}},
       {.positions = 4096},
       {}},
      {"every query",
       {{"num_hidden_layers", 3}, {"num_attention_heads", 64}, {"num_key_value_heads", 8}, {"head_dim", 16}},
       {.positions = 4096, .per_query = true},
       {"--per-query"}},
      {"wide MLP", {{"intermediate_size", 80000}}, {.positions = 2048}, {}},
      {"experts",
       {{"model_type", "qwen3_moe"},
        {"hidden_size", 1024},
        {"moe_intermediate_size", 4096},
        {"num_experts", 4},
        {"num_experts_per_tok", 2},
        {"norm_topk_prob", true}},
       {.positions = 8192},
       {}},
      {"a shared expert",
       {{"model_type", "qwen3_next"},
        {"num_hidden_layers", 1},
        {"full_attention_interval", 1},
        {"hidden_size", 1024},
        {"moe_intermediate_size", 64},
        {"shared_expert_intermediate_size", 8192},
        {"num_experts", 4},
        {"num_experts_per_tok", 1}},
       {.positions = 8192},
       {}},
      {"linear attention", linear_attention, {.positions = 8192}, {}},
      {"linear attention in bfloat16",
       linear_attention,
       {.dtype = models::ComputeDtype::bfloat16, .positions = 8192},
       {}},
      {"linear attention in float64",
       linear_attention,
       {.dtype = models::ComputeDtype::float64, .positions = 4096},
       {}},
      {"latent attention", latent_attention, {.positions = 4096}, {}},
      {"latent attention in bfloat16",
       latent_attention,
       {.dtype = models::ComputeDtype::bfloat16, .positions = 4096},
       {}},
      {"latent attention in float64",
       latent_attention,
       {.dtype = models::ComputeDtype::float64, .positions = 2048},
       {}},
      {"latent attention, composed", latent_attention, {.positions = 2048, .composed = true}, {"--kernel", "composed"}},
      {"vocabulary", large_vocabulary, {.positions = 1024}, {}},
      {"vocabulary in bfloat16", large_vocabulary, {.dtype = models::ComputeDtype::bfloat16, .positions = 1024}, {}},
      // Each kernel of products that this processor has, as an older one would take it
      // (kernels/linear/product_kernel.h).
      {"vocabulary, AVX2", large_vocabulary, {.positions = 1024}, {}, 1, "avx2"},
      {"vocabulary in bfloat16, AVX512_BF16",
       large_vocabulary,
       {.dtype = models::ComputeDtype::bfloat16, .positions = 1024},
       {},
       1,
       "avx512_bf16"},
      {"vocabulary in bfloat16, AVX-512",
       large_vocabulary,
       {.dtype = models::ComputeDtype::bfloat16, .positions = 1024},
       {},
       1,
       "avx512"},
      {"vocabulary in bfloat16, AVX2",
       large_vocabulary,
       {.dtype = models::ComputeDtype::bfloat16, .positions = 1024},
       {},
       1,
       "avx2"},
      {"vocabulary in float16", large_vocabulary, {.dtype = models::ComputeDtype::float16, .positions = 1024}, {}},
      {"no likelihood", large_vocabulary, {.positions = 1024, .likelihood = false}, {"--no-nll"}},
  };
}

std::string mebibytes(std::uint64_t bytes) {
  return fmt::format("{:.0f} MiB", static_cast<double>(bytes) / (1 << 20));
}

TEST(Memory, TheEstimateIsWithin15PercentOfThePeak) {
  const TemporaryFolder folder;
  std::string written;
  const auto prepare = [&](const OrderedJson& config, std::int64_t ids) {
    if (const std::string all = config.dump() + std::to_string(ids); all != written) {
      write_model(folder.path(), config, ids);
      written = all;
    }
  };
  const OrderedJson nothing = config_of({});
  prepare(nothing, 64);
  const std::uint64_t process = peak_of_sweep(folder.path(), {"--lengths", "16", "--samples", "1"});
  std::cout << fmt::format("{:35} measured {:>9}\n", "process", mebibytes(process));
  EXPECT_NEAR(static_cast<double>(process),
              static_cast<double>(
                  memory_needed(models::parse_decoder_config(Json(nothing), "test"), {.positions = 16}).process),
              0.15 * static_cast<double>(process));
  for (Case one : cases()) {
    const OrderedJson config = config_of(one.config);
    const auto parsed = models::parse_decoder_config(Json(config), "test");
    prepare(config, one.options.positions * one.samples);
    one.options.threads = 2;
    std::vector<std::string> arguments = {"--lengths", std::to_string(one.options.positions),
                                          "--samples", std::to_string(one.samples),
                                          "--dtype",   std::string(models::name_of(one.options.dtype))};
    arguments.insert(arguments.end(), one.arguments.begin(), one.arguments.end());
    const double measured = static_cast<double>(peak_of_sweep(folder.path(), arguments, one.instructions) - process);
    const models::MemoryNeeded needed = memory_needed(parsed, one.options);
    const auto estimate = static_cast<double>(needed.beyond_process());
    std::cout << fmt::format(
        "{:35} measured {:>9}, estimate {:>9} ({:+.0f}%): weights {}, sequences {}, attention {}, mlp {}, "
        "likelihood {}\n",
        one.name, mebibytes(static_cast<std::uint64_t>(measured)), mebibytes(needed.beyond_process()),
        100 * (estimate / measured - 1), mebibytes(needed.weights), mebibytes(needed.sequences),
        mebibytes(needed.attention), mebibytes(needed.mlp), mebibytes(needed.likelihood));
    EXPECT_NEAR(estimate / measured, 1, 0.15) << one.name;
  }
}

/// The demo's text, again and again.
fs::path text_of(const fs::path& folder, std::size_t bytes) {
  const std::string once = bytes_of(GAINLENS_SOURCE_DIR "/data/demo/text.txt");
  const fs::path path = folder / (std::to_string(bytes) + ".txt");
  std::ofstream file(path);
  for (std::size_t written = 0; written < bytes; written += once.size()) file << once;
  return path;
}

TEST(Memory, ASweepDoesNotGrowWithItsText) {
  const TemporaryFolder folder;
  const fs::path small = text_of(folder.path(), 1 << 20), large = text_of(folder.path(), 16 << 20);
  const auto peak = [&](const fs::path& text, const std::vector<std::string>& more) {
    std::vector<std::string> words = {"--text", text, "--lengths", "64", "--samples", "1"};
    words.insert(words.end(), more.begin(), more.end());
    return peak_of(GAINLENS_SOURCE_DIR "/data/demo/plain", words);
  };
  const std::uint64_t of_small = peak(small, {}), of_large = peak(large, {});
  std::cout << fmt::format("1 MiB: {}, 16 MiB: {}\n", mebibytes(of_small), mebibytes(of_large));
  EXPECT_LT(of_large, of_small + (4 << 20));
}

/// Writes zeros as one gzip member.
void write_zeros(const fs::path& path, std::size_t bytes) {
  gzFile file = gzopen(path.c_str(), "wb");
  const std::string block(1 << 20, '\0');
  for (std::size_t written = 0; written < bytes; written += block.size())
    gzwrite(file, block.data(), static_cast<unsigned>(block.size()));
  gzclose(file);
}

TEST(Memory, ASmallFileThatUnpacksToALargeTextIsRead) {
  const TemporaryFolder folder;
  write_zeros(folder.path() / "zeros.gz", 64 << 20);
  const auto sweep = [&](const std::string& model) {
    return run_shell("ulimit -v 1500000; " QUOTED_PROGRAM " sweep " + shell_word(model) +
                         " --text zeros.gz --lengths 64 --samples 1 --quiet --threads 1 --out run",
                     folder.path());
  };
  // A vocabulary with bytes: each zero is a token.
  const ProgramResult read = sweep(GAINLENS_SOURCE_DIR "/data/demo/plain");
  EXPECT_EQ(read.exit_code, 0) << read.error;
  // Words of GPT-2's pattern: the text is one word.
  const fs::path model = folder.path() / "model";
  fs::create_directory(model);
  for (const char* name : {"config.json", "model.safetensors"})
    fs::copy_file(fs::path(GAINLENS_SOURCE_DIR "/data/demo/plain") / name, model / name);
  std::ofstream(model / "tokenizer.json")
      << R"({"pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "use_regex": true},)"
         R"("model": {"type": "BPE", "vocab": {"\u0100": 0}, "merges": []}})";
  const ProgramResult refused = sweep("model");
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.error,
              AllOf(StartsWith("gainlens: error: zeros.gz: "),
                    HasSubstr("without a place where this tokenizer certainly ends"), HasSubstr("are available")));
  EXPECT_EQ(std::count(refused.error.begin(), refused.error.end(), '\n'), 1) << refused.error;
}

TEST(Memory, ASweepThatDoesNotFitIsToldSoBeforeItLoads) {
  const TemporaryFolder folder;
  write_model(folder.path(), config_of(heavy), 64);
  const auto sweep = [&](const std::string& options) {
    // The limit leaves about 200 MiB beside what the program has taken when it starts; the weights need 336 MiB.
    return run_shell("ulimit -d 409600; " QUOTED_PROGRAM
                     " sweep . --tokens ids.json --lengths 64 --samples 1 "
                     "--quiet --threads 1 --out run" +
                         options,
                     folder.path());
  };
  const ProgramResult warned = sweep("");
  EXPECT_THAT(warned.error, AllOf(StartsWith("gainlens: warning: the sweep needs about 3"),
                                  HasSubstr(" MiB of memory for 64 tokens, and "), HasSubstr("with --stream-weights")));
  const ProgramResult streamed = sweep("-streamed --stream-weights");
  EXPECT_EQ(streamed.error, "");
  EXPECT_EQ(streamed.exit_code, 0);
}

}  // namespace memory_test
}  // namespace gainlens::testing
