#include "runfile/run_store.h"

#include "core/sha256.h"
#include "support/file_bytes.h"
#include "support/recording_listener.h"
#include "support/refusal.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

namespace gainlens::runfile {
namespace run_store_test {

using gainlens::testing::bytes_of;
using gainlens::testing::refusal_of;
using gainlens::testing::write_file;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
namespace fs = std::filesystem;

const Json request = {{"format", "test"}, {"seed", 1}, {"text", "a"}};

Json itself(const Json& unit) {
  return unit;
}

class RunStores : public ::testing::Test {
 protected:
  gainlens::testing::TemporaryFolder folder_;
  fs::path run_ = folder_.path() / "run";
};

TEST_F(RunStores, KeepUnitsForALaterCall) {
  {
    RunStore folder(run_, request, {});
    EXPECT_FALSE(folder.has_unit("a"));
    folder.keep_unit("a", {1, 2});
  }
  const RunStore again(run_, request, {});
  EXPECT_TRUE(again.has_unit("a"));
  EXPECT_EQ(again.unit("a", itself), Json({1, 2}));
  EXPECT_FALSE(again.has_unit("b"));
  EXPECT_EQ(again.unit("b", itself), std::nullopt);
  EXPECT_TRUE(fs::exists(run_ / "units" / "a.json"));
  EXPECT_THAT(refusal_of([&] { RunStore(run_, request, {}); }), HasSubstr("is writing this run"));
}

TEST_F(RunStores, TellWhatAnEarlierCallHasMeasured) {
  const gainlens::testing::RecordingListener told;
  {
    RunStore folder(run_, request, {});
    folder.tell_of_stored();  // there is nothing to tell
    folder.keep_unit("a", 1);
    folder.tell_of_stored();
    folder.keep_unit("b", 2);
  }
  RunStore(run_, request, {}).tell_of_stored();
  EXPECT_THAT(told.notices(),
              ElementsAre(run_.string() + ": 1 unit was measured by an earlier call; this one continues",
                          run_.string() + ": 2 units were measured by an earlier call; this one continues"));
}

TEST_F(RunStores, WithoutAUnitNothingStays) {
  { const RunStore folder(run_, request, {}); }
  EXPECT_FALSE(fs::exists(run_));
  fs::create_directory(run_);
  { const RunStore folder(run_, request, {}); }
  EXPECT_TRUE(fs::is_empty(run_));
  const fs::path deep = folder_.path() / "new" / "folders";
  { const RunStore folder(deep, request, {}, {{"plan.json", "{}"}}); }
  EXPECT_FALSE(fs::exists(deep.parent_path()));
  RunStore(deep, request, {}, {{"plan.json", "{}"}}).keep_unit("a", 1);
  EXPECT_EQ(read_json_file(deep / "plan.json"), Json::object());
}

TEST_F(RunStores, OfAnotherRequestAreRefused) {
  RunStore(run_, request, {}).keep_unit("a", 1);
  Json other = request;
  other["seed"] = 2;
  EXPECT_THAT(refusal_of([&] { RunStore(run_, other, {}); }), HasSubstr("holds a run with another seed"));
  other["text"] = "b";
  EXPECT_THAT(refusal_of([&] { RunStore(run_, other, {"text"}); }), HasSubstr("holds a run with other text"));
  other["format"] = "else";
  EXPECT_THAT(refusal_of([&] { RunStore(run_, other, {}); }), HasSubstr("holds another run"));
  fs::create_directory(folder_.path() / "own");
  write_file(folder_.path() / "own" / "mine.txt", "x");
  EXPECT_THAT(refusal_of([&] { RunStore(folder_.path() / "own", request, {}); }), HasSubstr("holds 'mine.txt'"));
}

TEST_F(RunStores, AChangedUnitIsRefused) {
  RunStore folder(run_, request, {});
  folder.keep_unit("a", {{"nll", 1.25}});
  folder.keep_unit("b", {{"nll", 1.25}});
  const fs::path a = run_ / "units" / "a.json", b = run_ / "units" / "b.json";
  EXPECT_NE(bytes_of(a), bytes_of(b));
  const std::string whole = bytes_of(a);
  const auto refusal_with = [&](const std::string& bytes) {
    write_file(a, bytes);
    return refusal_of([&] { folder.unit("a", itself); });
  };
  std::string changed = whole;
  changed.replace(changed.find("1.25"), 4, "1.26");
  const std::string damaged = "a.json: is damaged (it is not what was written, or that of another run); delete it and";
  EXPECT_THAT(refusal_with(changed), HasSubstr(damaged));
  EXPECT_THAT(refusal_with(bytes_of(b)), HasSubstr(damaged));  // a unit of another name
  EXPECT_THAT(refusal_with(R"({"sha256": 1, "unit": 2})"), HasSubstr(damaged));
  EXPECT_THAT(refusal_with("{"), HasSubstr("a.json"));
  EXPECT_THAT(refusal_with("[1]"), HasSubstr("has no checksum, as units of older versions; delete " +
                                             (run_ / "units").string() + " and repeat the command"));
  write_file(a, whole);
  EXPECT_EQ(folder.unit("a", itself), Json({{"nll", 1.25}}));
  Json other = request;
  other["seed"] = 2;
  EXPECT_THAT(refusal_of([&] { StoredUnits(run_, other).read("a", itself); }), HasSubstr("that of another run"));
  EXPECT_EQ(StoredUnits(run_, request).names(), (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(StoredUnits(folder_.path() / "nowhere", request).names().empty());
}

/// What is advised works: the unit is computed again.
TEST_F(RunStores, WithoutUnitsGoOn) {
  RunStore(run_, request, {}).keep_unit("a", 1);
  fs::remove_all(run_ / "units");
  RunStore folder(run_, request, {});
  EXPECT_FALSE(folder.has_unit("a"));
  folder.keep_unit("a", 1);
  EXPECT_EQ(folder.unit("a", itself), Json(1));
}

const ResultForm form = {"result.json", "test", 1};

Json result_of(double number) {
  return {{"format", "test"}, {"version", 1}, {"request", request}, {"number", number}};
}

class FinishedRuns : public RunStores {
 protected:
  FinishedRuns() {
    RunStore store(run_, request, {});
    store.keep_unit("a", 1);
    store.keep_unit("b", 2);
    store_result(run_, form, result_of(1.25));
    whole_ = bytes_of(manifest_);
  }
  double number() const {
    return read_result(run_, form, Proof::by_reader, [](const Json& json) { return json.at("number").get<double>(); });
  }
  std::string refusal() const {
    return refusal_of([&] { number(); });
  }
  std::string refusal_of_manifest(const std::string& text) const {
    write_file(manifest_, text);
    return refusal();
  }
  static std::string line(const std::string& name, const std::string& sha256 = std::string(64, '0')) {
    return json_text({{"name", name}, {"sha256", sha256}}) + "\n";
  }

  fs::path manifest_ = run_ / "manifest.jsonl";
  std::string whole_;  // what it holds
};

TEST_F(FinishedRuns, AreProvenByTheirManifest) {
  EXPECT_EQ(number(), 1.25);
  std::string lines;
  for (const char* name : {"request.json", "result.json", "units/a.json", "units/b.json"})
    lines += line(name, sha256_file(run_ / name));
  EXPECT_EQ(whole_, lines);
  const auto written = fs::last_write_time(run_ / "result.json");
  store_result(run_, form, result_of(1.25));
  EXPECT_EQ(bytes_of(manifest_), whole_);
  EXPECT_EQ(fs::last_write_time(run_ / "result.json"), written);
  fs::remove_all(run_ / "units");  // as runs are shipped
  EXPECT_EQ(number(), 1.25);
}

TEST_F(FinishedRuns, AChangedByteIsRefused) {
  for (const char* name : {"request.json", "result.json", "units/a.json", "units/b.json"}) {
    const std::string bytes = bytes_of(run_ / name);
    for (const std::size_t place : {std::size_t{0}, bytes.size() / 2, bytes.size() - 1}) {
      std::string changed = bytes;
      changed[place] = static_cast<char>(changed[place] ^ 1);
      write_file(run_ / name, changed);
      EXPECT_THAT(refusal(), AllOf(HasSubstr((run_ / name).string() + ": its sha256 is "),
                                   HasSubstr("and manifest.jsonl says "), Not(HasSubstr("\n"))))
          << place;
    }
    write_file(run_ / name, bytes);
  }
  fs::remove(run_ / "units" / "b.json");
  EXPECT_THAT(refusal(), HasSubstr("b.json: is listed in manifest.jsonl and is not there; repeat the command"));
  fs::remove(run_ / "result.json");
  EXPECT_THAT(refusal(), HasSubstr("is not finished (1 unit is there); repeat the command that makes it, which"));
}

TEST_F(FinishedRuns, OfEarlierVersionsAreRead) {
  fs::remove(manifest_);
  EXPECT_EQ(number(), 1.25);
  EXPECT_EQ(prove_store(run_, "result.json"), "result.json has no checksum beside it; what it holds is not proven.");
  store_result(run_, form, result_of(1.25));
  EXPECT_EQ(prove_store(run_, "result.json"), "");
  EXPECT_EQ(bytes_of(manifest_), whole_);
}

TEST_F(FinishedRuns, AWrongManifestIsRefused) {
  const std::string repair = "delete the file and repeat the command that makes the run, which writes it again";
  const std::string units_b = line("units/b.json", sha256_file(run_ / "units" / "b.json"));
  EXPECT_THAT(refusal_of_manifest(whole_.substr(0, whole_.size() - units_b.size())),
              AllOf(HasSubstr("manifest.jsonl: does not list units/b.json"), HasSubstr(repair)));
  EXPECT_THAT(refusal_of_manifest(""), HasSubstr("does not list result.json"));
  EXPECT_THAT(refusal_of_manifest(whole_ + units_b),
              AllOf(HasSubstr("manifest.jsonl, line 5: 'units/b.json' stands in it twice"), HasSubstr(repair)));
  const fs::path outside = write_file(folder_.path() / "outside.json", "x");
  for (const std::string& name : {outside.string(), std::string("../outside.json"), std::string("units/../a"),
                                  std::string("./a"), std::string("units/"), std::string(".."), std::string("."),
                                  std::string(), std::string("a\0b", 3), std::string("/")})
    EXPECT_THAT(refusal_of_manifest(whole_ + line(name)),
                AllOf(HasSubstr("is no file of this folder"), HasSubstr(repair)))
        << name;
  for (const std::string& sha256 : {std::string(63, '0'), std::string(64, 'A'), std::string(64, 'g'), std::string()})
    EXPECT_THAT(refusal_of_manifest(whole_ + line("mine", sha256)),
                AllOf(HasSubstr("is no sha256"), HasSubstr(repair)));
  for (const char* text : {"{", "[]", R"({"name": "a"})", R"({"name": 1, "sha256": "0"})"})
    EXPECT_THAT(refusal_of_manifest(whole_ + text), AllOf(HasSubstr("manifest.jsonl, line 5"), HasSubstr(repair)));
  write_file(manifest_, whole_);
  fs::rename(run_ / "units" / "b.json", folder_.path() / "b.json");
  fs::create_symlink(folder_.path() / "b.json", run_ / "units" / "b.json");
  EXPECT_THAT(refusal(), HasSubstr("b.json: is a link, or lies behind one"));
  fs::remove(manifest_);  // what is advised works
  store_result(run_, form, result_of(1.25));
  EXPECT_EQ(bytes_of(manifest_), whole_);
}

/// At every moment of writing there is the old result, none, or the new one with its checksum.
TEST_F(FinishedRuns, AnotherResultReplacesBoth) {
  const std::string old = bytes_of(run_ / "result.json");
  fs::remove(manifest_);
  fs::create_directory(manifest_);  // where a file cannot be written
  EXPECT_ANY_THROW(store_result(run_, form, result_of(2)));
  EXPECT_EQ(bytes_of(run_ / "result.json"), old);
  fs::remove(manifest_);
  store_result(run_, form, result_of(2));
  EXPECT_EQ(number(), 2);
  EXPECT_NE(bytes_of(manifest_), whole_);
}

TEST_F(RunStores, WithoutAPathKeepNothing) {
  RunStore folder({}, request, {});
  folder.keep_unit("a", 1);
  EXPECT_FALSE(folder.has_unit("a"));
  EXPECT_TRUE(folder.path().empty());
}

}  // namespace run_store_test
}  // namespace gainlens::runfile
