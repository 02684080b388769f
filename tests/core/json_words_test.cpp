#include "core/json_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

namespace gainlens {
namespace json_words_test {

std::string words_of(const std::function<void()>& read) {
  try {
    read();
  } catch (const Json::exception& error) {
    return json_error_in_words(error);
  }
  return "read";
}

TEST(JsonWords, AreOurs) {
  const Json object = {{"a", "text"}}, array = Json::array();
  EXPECT_EQ(words_of([&] { object.at("b"); }), "the key 'b' is missing");
  EXPECT_EQ(words_of([&] { array.at("b"); }), "a value of the type array stands where an object or an array is needed");
  EXPECT_EQ(words_of([&] { array.at(3); }), "an array has too few entries");
  EXPECT_EQ(words_of([&] { object.at("a").get<double>(); }), "a value is of the type string; number is needed");
  EXPECT_EQ(words_of([&] { array.value("b", 1); }),
            "a value of the type array stands where an object or an array is needed");
  EXPECT_EQ(words_of([&] { object.at(Json::json_pointer("/a/0")); }), "it has another form than gainlens writes");
}

}  // namespace json_words_test
}  // namespace gainlens
