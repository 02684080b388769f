// A terminal obeys what it is sent: a name in a file could clear the screen, hide a line or make up another one. Here
// such a text stands in every place where a file can hold text, one place at a time, and the commands that read the
// file, called in this process, must not send it on.
#include "analyses/made_sensitivity.h"
#include "cli/application.h"
#include "cli/planted_files.h"
#include "cli/tiny_checkpoint.h"
#include "core/json.h"
#include "language/language_testing.h"
#include "runfile/made_attention_run.h"
#include "runfile/made_experiment_run.h"
#include "runfile/made_recommend_run.h"
#include "support/file_bytes.h"
#include "support/shared_data.h"
#include "tokenizers/sentencepiece_model.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace gainlens::testing {
namespace planted_escapes_test {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

const fs::path golden = GAINLENS_SOURCE_DIR "/tests/golden";

class PlantedEscapes : public ::testing::Test {
 protected:
  void TearDown() override {
    EXPECT_GT(places_, 0);
    fmt::print("{} places, {} commands, {} of them sent it on\n", places_, commands_, raw_);
  }

  fs::path path(const std::string& name) const { return folder_.path() / name; }

  /// Runs two of the commands that read a file with the text at this place; at the next place the next two. All of them
  /// at every place would take minutes.
  void try_place(const std::string& place, const std::vector<Words>& commands) {
    ++places_;
    for (std::size_t i = 0; i < std::min<std::size_t>(commands.size(), 2); ++i) {
      const Words& words = commands[turn_++ % commands.size()];
      ++commands_;
      const std::string reason = sent_on(printed_by(words));
      if (!reason.empty() && ++raw_ <= 20) ADD_FAILURE() << words.at(0) << ", " << place << ": " << reason;
    }
  }

  /// Every place of a JSON document that is a file.
  void try_json(const fs::path& file, const Json& document, const std::vector<Words>& commands) {
    for_each_planted(document, [&](const std::string& place, const Json& planted) {
      write_file(file, planted.dump());
      try_place(place, commands);
    });
    write_file(file, document.dump());
  }

  /// What the command prints on both streams.
  static std::string printed_by(const Words& words) {
    std::vector<const char*> arguments{"gainlens"};
    for (const std::string& word : words) arguments.push_back(word.c_str());
    ::testing::internal::CaptureStdout();
    ::testing::internal::CaptureStderr();
    cli::run_application(static_cast<int>(arguments.size()), arguments.data());
    std::fflush(nullptr);
    return ::testing::internal::GetCapturedStdout() + ::testing::internal::GetCapturedStderr();
  }

  /// A checkpoint whose weights are those of a golden one, and whose other files may be changed.
  fs::path checkpoint_like(const fs::path& original) {
    const fs::path made = path("checkpoint");
    fs::remove_all(made);
    fs::create_directories(made);
    fs::create_symlink(original / "model.safetensors", made / "model.safetensors");
    fs::copy_file(original / "config.json", made / "config.json");
    return made;
  }

  /// A finished sweep of the small checkpoint.
  fs::path swept() {
    printed_by({"sweep", tiny_checkpoint, "--tokens", write_ids(folder_.path(), 200), "--lengths", "16,32", "--samples",
                "2", "--quiet", "--threads", "1", "--out", path("run")});
    EXPECT_TRUE(fs::exists(path("run") / "run.h5"));
    return path("run");
  }

  TemporaryFolder folder_;
  int places_ = 0, commands_ = 0, raw_ = 0;
  std::size_t turn_ = 0;
};

TEST_F(PlantedEscapes, TheCheckSeesThem) {
  EXPECT_EQ(sent_on("plain \xc3\xbc\n\ttext\n"), "");
  for (const char* text : {"\x1b[2J", "\xc2\x9b", "\x9b", "\x7f", "\r", "a\nSECOND"})
    EXPECT_NE(sent_on(text), "") << text;
  places_ = 1;
}

TEST_F(PlantedEscapes, ConfigurationsOfEveryFamily) {
  for (const auto& entry : fs::directory_iterator(golden / "models")) {
    if (!exists(entry.path() / "model.safetensors")) continue;
    const fs::path made = checkpoint_like(entry.path());
    try_json(made / "config.json", read_json_file(entry.path() / "config.json"), {{"inspect", made}});
  }
}

TEST_F(PlantedEscapes, ConfigurationInEveryCommand) {
  const fs::path made = checkpoint_like(tiny_checkpoint);
  const std::string ids = write_ids(folder_.path(), 40), out = path("out");
  try_json(made / "config.json", read_json_file(tiny_checkpoint / "config.json"),
           {{"inspect", made, "--json"},
            {"hooks", made, "--threads", "1"},
            {"capture", made, "--tokens", ids, "--hooks", "blocks.0.hook_resid_pre", "--out", out},
            {"sweep", made, "--tokens", ids, "--lengths", "16", "--samples", "1", "--out", out},
            {"look", made, "--tokens", ids},
            {"generate", made, "--tokens", ids, "--max-new", "2"},
            {"evaluate", "language-model", made, "--tokens", ids}});
}

TEST_F(PlantedEscapes, HeadersOfSafetensors) {
  for (const char* name : {"llama", "seed-oss", "qwen3-moe"}) {
    const fs::path original = golden / "models" / name, made = checkpoint_like(original);
    fs::remove(made / "model.safetensors");
    const std::string bytes = bytes_of(original / "model.safetensors");
    for_each_planted_header(bytes, [&](const std::string& place, const std::string& planted) {
      write_file(made / "model.safetensors", planted);
      try_place(place, {{"inspect", made}, {"hooks", made, "--threads", "1"}});
    });
  }
}

TEST_F(PlantedEscapes, IndexOfShards) {
  const fs::path made = checkpoint_like(tiny_checkpoint);
  Json index = {{"metadata", {{"total_size", 1}}}, {"weight_map", Json::object()}};
  const Json header = safetensors_header(bytes_of(tiny_checkpoint / "model.safetensors"));
  for (const auto& [name, entry] : header.items()) {
    if (name != "__metadata__") index["weight_map"][name] = "a.safetensors";
  }
  fs::rename(made / "model.safetensors", made / "a.safetensors");
  index["metadata"] = Json::object();
  try_json(made / "model.safetensors.index.json", index, {{"inspect", made}, {"inspect", made, "--json"}});
}

TEST_F(PlantedEscapes, GgufFiles) {
  for (const auto& entry : fs::directory_iterator(golden / "gguf")) {
    if (entry.path().extension() != ".gguf") continue;
    for_each_planted_gguf(bytes_of(entry.path()), [&](const std::string& place, const std::string& planted) {
      const fs::path file = write_file(path("model.gguf"), planted);
      try_place(entry.path().filename().string() + ": " + place, {{"inspect", file}});
    });
  }
}

TEST_F(PlantedEscapes, TokenizersAsJson) {
  const fs::path made = checkpoint_like(tiny_checkpoint);
  const Json all = read_json_file(GAINLENS_SOURCE_DIR "/tests/tokenizers/golden/tokenizers.json");
  std::string last_kind;
  for (const Json& one : all.at("cases")) {
    Json tokenizer = one.at("tokenizer");
    tokenizer["model"] = all.at("models").at(one.at("model").get<std::string>());
    tokenizer["model"].update(one.at("model_changes"));
    const std::string kind = tokenizer.at("pre_tokenizer").dump() + tokenizer.at("normalizer").dump();
    if (kind == last_kind) continue;
    last_kind = kind;
    try_json(made / "tokenizer.json", tokenizer, {{"inspect", made}});
  }
}

TEST_F(PlantedEscapes, OtherFilesOfTokenizers) {
  const fs::path made = checkpoint_like(tiny_checkpoint);
  const fs::path plain = GAINLENS_SOURCE_DIR "/data/demo/plain";
  fs::copy_file(plain / "tokenizer.model", made / "tokenizer.model");
  const std::string text = write_file(path("text.txt"), made_up_text(20));
  const std::vector<Words> commands = {
      {"inspect", made},
      {"sweep", made, "--text", text, "--lengths", "16", "--samples", "1", "--out", path("out")},
      {"look", made, "--prompt", "ab", "--bos", "never", "--next", "64", "--lens"}};
  try_json(made / "tokenizer_config.json",
           {{"add_bos_token", true},
            {"tokenizer_class", "LlamaTokenizer"},
            {"bos_token", {{"content", "<s>"}, {"lstrip", false}}},
            {"add_prefix_space", false}},
           commands);
  fs::remove(made / "tokenizer_config.json");
  for (std::size_t planted = 0; planted < 4; ++planted) {
    tokenizers::SentencePieceModel model;
    model.pieces = {{"<unk>", 0, tokenizers::PieceType::unknown},
                    {"<s>", 0, tokenizers::PieceType::control},
                    {"</s>", 0, tokenizers::PieceType::control},
                    {"a", -1},
                    {"b", -2},
                    {"\u2581", -3}};
    model.bos = 1;
    model.eos = 2;
    model.pieces[planted].text += plant;
    write_file(made / "tokenizer.model", serialise(model));
    try_place(fmt::format("tokenizer.model: piece {}", planted), commands);
  }
  write_file(made / "tokenizer.model", plant);
  try_place("tokenizer.model: all of it", commands);
  fs::remove(made / "tokenizer.model");
  write_file(made / "merges.txt", "#version: 0.2\na b\n");
  try_json(made / "vocab.json", {{"a", 0}, {"b", 1}, {"ab", 2}}, commands);
  for (const std::string& line : {plant, "a " + plant, plant + " b", "a b " + plant}) {
    write_file(made / "merges.txt", "#version: 0.2\n" + line + "\n");
    try_place("merges.txt", commands);
  }
}

TEST_F(PlantedEscapes, RunsOfASweep) {
  const fs::path run = swept(), alone = path("alone.h5");
  const std::string ids = path("ids.json");
  const std::vector<Words> of_file = {{"inspect", alone},   {"inspect", alone, "--json"},
                                      {"sinks", alone},     {"sinks", alone, "--json"},
                                      {"sink-vs-k", alone}, {"audit", alone},
                                      {"check", alone},     {"compare", alone}};
  for_each_planted_hdf5(run / "run.h5", alone, [&](const std::string& place) { try_place(place, of_file); });

  const std::vector<Words> of_folder = {{"inspect", run},
                                        {"audit", run},
                                        {"check", run},
                                        {"sweep", tiny_checkpoint, "--tokens", ids, "--lengths", "16,32", "--samples",
                                         "2", "--threads", "1", "--out", run}};
  for (const char* name : {"request.json", "log.json"}) try_json(run / name, read_json_file(run / name), of_folder);
  const std::string manifest = bytes_of(run / "manifest.jsonl");
  const std::size_t end = manifest.find('\n');
  for_each_planted(parse_json(manifest.substr(0, end), "manifest"), [&](const std::string& place, const Json& planted) {
    write_file(run / "manifest.jsonl", planted.dump() + manifest.substr(end));
    try_place("manifest.jsonl: " + place, of_folder);
  });
  write_file(run / "manifest.jsonl", manifest);
  write_file(run / "run.h5.sha256", plant);
  try_place("run.h5.sha256", of_folder);
}

TEST_F(PlantedEscapes, ReportOfASweep) {
  const fs::path run = swept(), alone = path("alone.h5");
  plant_everywhere(run / "run.h5", alone);
  try_place("every attribute at once", {{"report", alone, "--out", path("report")}});
}

TEST_F(PlantedEscapes, RunsOfRecommenders) {
  const fs::path file = path("run.h5"), other = path("planted.h5");
  runfile::write_recommend_run(file, made_recommend_run({}));
  const std::vector<Words> commands = {
      {"inspect", other}, {"check", other}, {"compare", other}, {"compare", other, "--json"}};
  for_each_planted_hdf5(file, other, [&](const std::string& place) { try_place(place, commands); });
  plant_everywhere(file, other);
  try_place("every attribute at once", {{"report", other, "--out", path("report")}});
}

TEST_F(PlantedEscapes, RunsWithVariants) {
  const fs::path file = path("run.h5"), other = path("planted.h5");
  runfile::write_recommend_run(
      file, made_sensitivity_run({.settings = {{"initial_gain", 0.5, 0.2}}, .seeds = 3, .users = 60}));
  const std::string condition = "1=" + other.string();
  const std::vector<Words> commands = {{"sensitivity", other},
                                       {"sensitivity", other, "--json"},
                                       {"gain-by", condition, "--baseline", "bft"},
                                       {"gain-by", condition, "--baseline", "bft", "--json"}};
  for_each_planted_hdf5(file, other, [&](const std::string& place) { try_place(place, commands); });
  plant_everywhere(file, other);
  try_place("every attribute at once", {{"sensitivity", other, "--out", path("knobs")},
                                        {"gain-by", condition, "--baseline", "bft", "--out", path("gains")}});
}

TEST_F(PlantedEscapes, SweepsOfRecommenders) {
  const fs::path file = path("run.h5"), other = path("planted.h5");
  runfile::write_attention_run(file, made_attention_run({.seeds = {0}, .users = 30}));
  const std::vector<Words> commands = {{"inspect", other}, {"inspect", other, "--json"}, {"sinks", other}};
  for_each_planted_hdf5(file, other, [&](const std::string& place) { try_place(place, commands); });
  plant_everywhere(file, other);
  try_place("every attribute at once", {{"report", other, "--out", path("report")}});
}

TEST_F(PlantedEscapes, RunsOfExperiments) {
  const fs::path file = path("run.h5"), other = path("planted.h5");
  runfile::write_experiment_run(file, made_experiment_run(), "made");
  const std::vector<Words> commands = {
      {"inspect", other}, {"inspect", other, "--json"}, {"compare", other}, {"compare", other, "--json"}};
  for_each_planted_hdf5(file, other, [&](const std::string& place) { try_place(place, commands); });
}

TEST_F(PlantedEscapes, NumbersOfItems) {
  std::string histories, numbers;
  for (int user = 0; user < 30; ++user) {
    histories += std::to_string(user);
    for (int i = 0; i < 5; ++i) histories += " " + std::to_string((user * 7 + i * 11) % 60 + 1);
    histories += "\n";
  }
  for (int item = 1; item <= 60; ++item) numbers += std::to_string(item) + "," + std::to_string(item % 7) + "\n";
  const std::string data = write_file(path("data.txt"), histories), file = path("numbers.csv");
  const std::string run = path("run"), name = one_line_plant;
  printed_by({"train", "recommend", "--data", data, "--out", run, "--arm", "bft", "--warm-up", "0", "--epochs", "1",
              "--width", "8", "--threads", "1", "--inner-width", "8", "--quiet"});
  ASSERT_TRUE(fs::exists(fs::path(run) / "run.h5"));
  const std::vector<Words> commands = {{"k-by-frequency", run, "--data", data, "--against", file, "--threads", "1"}};
  const std::vector<std::string> contents = {
      "item," + name + "\n" + numbers, name + ",noise\n" + numbers, "item,noise\n" + name + ",1\n" + numbers,
      "item,noise\n1," + name + "\n" + numbers, "item,noise\n" + numbers + "1," + name + "\n"};
  for (const std::string& content : contents) {
    write_file(file, content);
    try_place(content, commands);
  }
}

TEST_F(PlantedEscapes, TrainedRecommenders) {
  const std::string data = write_file(path("data.txt"), "a 1 2 3 4\nb 2 3 4 1\nc 3 4 1 2\nd 4 1 2 3\ne 1 3 2 4\n");
  const fs::path run = path("run");
  const Words train = {"train",   "recommend", "--data",    data, "--out",         run, "--epochs", "1",
                       "--width", "8",         "--threads", "1",  "--inner-width", "8", "--quiet"};
  printed_by(train);
  ASSERT_TRUE(fs::exists(run / "run.h5"));
  const std::vector<Words> commands = {
      train,
      {"inspect", run},
      {"inspect", run / "plain" / "seed-0"},
      {"evaluate", "recommend", "--checkpoint", run / "plain" / "seed-0", "--data", data, "--threads", "1"}};
  int files = 0;
  std::vector<fs::path> found;
  for (const auto& entry : fs::recursive_directory_iterator(run)) {
    if (entry.is_regular_file()) found.push_back(entry.path());
  }
  for (const fs::path& file : found) {
    const std::string bytes = bytes_of(file);
    if (file.extension() == ".json") {
      try_json(file, parse_json(bytes, "json"), commands);
    } else if (file.extension() == ".safetensors") {
      for_each_planted_header(bytes, [&](const std::string& place, const std::string& planted) {
        write_file(file, planted);
        try_place(file.filename().string() + ": " + place, commands);
      });
    } else if (file.extension() != ".h5") {
      write_file(file, plant);
      try_place(file.filename().string(), commands);
    } else {
      continue;
    }
    write_file(file, bytes);
    ++files;
  }
  EXPECT_GE(files, 3);
}

TEST_F(PlantedEscapes, TrainedLanguageModels) {
  const fs::path out = path("out");
  const std::string text = write_file(path("text.txt"), made_up_text(400)), recipe = path("recipe.json");
  Json small = small_recipe();
  small["stages"] = {{{"context", 16}, {"steps", 2}}};
  write_file(recipe, small.dump());
  const Words train = {"train", "language-model", "--config", recipe,   "--text", text, "--out",
                       out,     "--threads",      "1",        "--quiet"};
  printed_by(train);
  ASSERT_TRUE(fs::exists(out / "config.json"));
  try_json(recipe, small,
           {{"train", "language-model", "--config", recipe, "--text", text, "--out", path("new"), "--threads", "1",
             "--quiet", "--device", "none"},
            train});
  std::vector<fs::path> found;
  for (const auto& entry : fs::recursive_directory_iterator(out)) {
    if (entry.is_regular_file() && entry.path().filename() != "tokenizer.model") found.push_back(entry.path());
  }
  for (const fs::path& file : found) {
    const std::string bytes = bytes_of(file);
    if (file.extension() == ".json") {
      try_json(file, parse_json(bytes, "json"), {train});
    } else if (file.extension() == ".safetensors") {
      for_each_planted_header(bytes, [&](const std::string& place, const std::string& planted) {
        write_file(file, planted);
        try_place(file.filename().string() + ": " + place, {train});
      });
    } else {
      write_file(file, plant);
      try_place(file.filename().string(), {train});
    }
    write_file(file, bytes);
  }
}

TEST_F(PlantedEscapes, Interactions) {
  const std::string file = path("data.txt"), name = one_line_plant;
  const std::vector<Words> commands = {
      {"inspect", file},
      {"inspect", file, "--json"},
      {"train", "recommend", "--data", file, "--arm", "popularity", "--threads", "1", "--out", path("out")}};
  const std::vector<std::string> contents = {
      name + " 1 2 3\nb 1 2 3\n",
      "a " + name + " 2 3\nb 1 2 3\n",
      "a 1 2\n" + name + "\n" + name + " 1\n",
      name + "::1::5::1\n" + name + "::2::5::2\n" + name + "::3::5::3\n",
      "1::" + name + "::5::1\n1::2::5::2\n1::3::5::3\n",
      "1::2::" + name + "::1\n1::2::5::" + name + "\n",
      "user_id:token\titem_id:token\ttimestamp:float\n" + name + "\t" + name + "\t1\n" + name + "\t2\t2\n",
      "user_id:token\titem_id:token\t" + name + ":float\n1\t2\t3\n",
      name + ":token\titem_id:token\ttimestamp:float\n1\t2\t3\n",
      "user_id:token\titem_id:token\ttimestamp:float\n1\t2\t" + name + "\n",
      plant,
      name};
  for (const std::string& content : contents) {
    write_file(file, content);
    try_place(content, commands);
    fs::remove_all(path("out"));
  }
  const Json review = {{"reviewerID", "A"}, {"asin", "B"}, {"unixReviewTime", 1}, {"overall", 5.0}};
  for_each_planted(review, [&](const std::string& place, const Json& planted) {
    write_file(file, planted.dump() + "\n" + review.dump() + "\n");
    try_place("review: " + place, commands);
    fs::remove_all(path("out"));
  });
}

TEST_F(PlantedEscapes, TablesAndRanks) {
  const std::string file = path("data.csv"), name = one_line_plant, quoted = "\"" + std::string(plant) + "\"";
  const std::vector<Words> commands = {
      {"inspect", file},
      {"inspect", file, "--json"},
      {"inspect", file, "--user-column", "usr"},
      {"train", "recommend", "--data", file, "--arm", "popularity", "--threads", "1", "--out", path("out")}};
  for (const std::string& at : {name, quoted}) {
    for (const std::string& content :
         {"user," + at + ",time\n1,2,3\n", at + "\n1\n", at + ",user,item,time\n1,2,3,4\n1,2,4,5\n1,2,5,6\n",
          "user,item,time," + at + "\n1,2,3,4\n", "user,item\n" + at + ",1\n" + at + ",2\n" + at + ",3\n",
          "user,item\n1," + at + "\n1,2\n1,3\n", "user,item,time\n1,2," + at + "\n", "user,item\n1,2\n" + at + "x\n"}) {
      write_file(file, content);
      try_place(content, commands);
      fs::remove_all(path("out"));
    }
  }
  const std::string data = write_file(path("data.txt"), name + " 1 2 3\nb 2 3 1\n"), ranks = path("ranks.csv");
  for (const std::string& at : {name, quoted}) {
    for (const std::string& content : {"user," + at + ",rank\nb,1,1\n", "user,target,rank\n" + at + ",3,1\nb,1,1\n",
                                       "user,target,rank\nb," + at + ",1\n", "user,target,rank\nb,1," + at + "\n",
                                       "user,target,rank,seed\nb,1,1," + at + "\n", "user,target,rank\n" + at + "x\n",
                                       std::string("user,target,rank\nb,1,1\n")}) {
      write_file(ranks, content);
      try_place(content, {{"evaluate", "recommend", "--ranks", ranks, "--data", data},
                          {"evaluate", "recommend", "--ranks", ranks, "--data", data, "--json"},
                          {"compare", ranks, ranks, "--data", data}});
    }
  }
}

TEST_F(PlantedEscapes, FilesOfOptions) {
  const std::string ids = path("ids.json"), settings = path("settings.json"),
                    data = write_file(path("data.txt"), "a 1 2 3 4\nb 2 3 4 1\nc 3 4 1 2\n");
  try_json(ids, {2, 3, 4, 5},
           {{"sweep", tiny_checkpoint, "--tokens", ids, "--lengths", "4", "--out", path("out")},
            {"capture", tiny_checkpoint, "--tokens", ids, "--hooks", "hook_embed", "--out", path("out.safetensors")}});
  try_json(settings, {{"width", 8}, {"loss", "full"}, {"dropout", 0.1}},
           {{"train", "recommend", "--data", data, "--config", settings, "--device", "none", "--out", path("out")},
            {"train", "recommend", "--data", data, "--config", settings, "--epochs", "0", "--out", path("out")}});
  for (const std::string& text : {plant, std::string("[1, ") + plant, "{\"" + plant}) {
    for (const std::string& file : {ids, settings}) write_file(file, text);
    try_place("not JSON", {{"capture", tiny_checkpoint, "--tokens", ids, "--hooks", "hook_embed", "--out", path("o")},
                           {"train", "recommend", "--data", data, "--config", settings, "--out", path("out")}});
  }
}

TEST_F(PlantedEscapes, FoldersAndLinks) {
  const fs::path cache = path("models--a--b");
  fs::create_directories(cache / "snapshots" / one_line_plant);
  fs::create_directories(cache / "snapshots" / "other");
  fs::create_directories(cache / "refs");
  try_place("snapshots", {{"inspect", cache}, {"hooks", cache}});
  write_file(cache / "refs" / "main", plant);
  try_place("refs/main", {{"inspect", cache}, {"hooks", cache}});
  const fs::path made = path("made");
  fs::create_directories(made);
  fs::copy_file(tiny_checkpoint / "config.json", made / "config.json");
  fs::create_symlink(plant, made / "model.safetensors");
  try_place("a link", {{"inspect", made}, {"hooks", made}});
  write_file(made / (one_line_plant + ".safetensors"), "x");
  try_place("a file's name", {{"inspect", made}, {"hooks", made}});
  const fs::path parts = path("parts");
  fs::create_directories(parts);
  for (const char* name : {"one.gguf", "two.gguf"}) write_file(parts / (one_line_plant + name), "GGUF");
  try_place("names of GGUF files", {{"inspect", parts}, {"hooks", parts}});
}

}  // namespace planted_escapes_test
}  // namespace gainlens::testing
