#include "formats/pickle_data.h"

#include "formats/torch_bytes.h"

#include <charconv>
#include <chrono>

namespace gainlens::formats {
namespace pickle_data_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

PickleData parsed(const std::string& pickle) {
  return PickleData::parse(as_bytes(pickle), "p.pkl");
}

std::string from_hex(std::string_view hex) {
  std::string bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    std::uint8_t byte = 0;
    std::from_chars(hex.data() + i, hex.data() + i + 2, byte, 16);
    bytes += static_cast<char>(byte);
  }
  return bytes;
}

/// What the entries of a node are, in short.
std::vector<std::string> entries(const PickleData& data, PickleId id) {
  std::vector<std::string> found;
  for (const PickleId part : data.at(id).parts) found.push_back(data.description(part));
  return found;
}

/// {"a": [1, -2, 300, 70000, -(2**40), 2.5, None, True, False], "t": (1, 2, 3, 4), "b": b"xy", "s": {7},
///  "o": collections.OrderedDict([("k", "v")])}
void expect_the_value(const PickleData& data) {
  EXPECT_THAT(entries(data, data.value(data.root(), "a").value()),
              ElementsAre("1", "-2", "300", "70000", "-1099511627776", "2.5", "None", "True", "False"));
  EXPECT_THAT(entries(data, data.value(data.root(), "t").value()), ElementsAre("1", "2", "3", "4"));
  const PickleId object = data.value(data.root(), "o").value();
  EXPECT_EQ(data.class_of(object), "collections.OrderedDict");
  EXPECT_EQ(data.at(data.value(object, "k").value()).text, "v");
  EXPECT_FALSE(data.value(object, "lost"));
  EXPECT_FALSE(data.value(data.root(), "lost"));
}

// What Python 3.11 writes.
TEST(PickleData, ReadsTheProtocolsOfPython) {
  const PickleData four = parsed(
      from_hex("80049580000000000000007d94288c0161945d94284b014afeffffff4d2c014a701101008a060000000000ff474004000000"
               "0000004e8889658c017494284b014b024b034b0474948c01629443027879948c0173948f94284b07908c016f948c0b636f6c"
               "6c656374696f6e73948c0b4f726465726564446963749493942952948c016b948c01769473752e"));
  expect_the_value(four);
  EXPECT_EQ(four.at(four.value(four.root(), "b").value()).text, "xy");
  EXPECT_THAT(entries(four, four.value(four.root(), "s").value()), ElementsAre("7"));
  expect_the_value(parsed(
      from_hex("80027d71002858010000006171015d7102284b014afeffffff4d2c014a701101008a060000000000ff474004000000000000"
               "4e8889655801000000747103284b014b024b034b047471045801000000627105635f636f646563730a656e636f64650a7106"
               "58020000007879710758060000006c6174696e31710886710952710a580100000073710b635f5f6275696c74696e5f5f0a73"
               "65740a710c5d710d4b076185710e52710f58010000006f711063636f6c6c656374696f6e730a4f726465726564446963740a"
               "71112952711258010000006b7113580100000076711473752e")));
}

TEST(PickleData, AnObjectStaysTheNameOfItsClass) {
  // os.system("false"): Python would run it.
  const PickleData data = parsed(pickle_of(pickled_global("os", "system") + pickled("false") + "\x85R"));
  EXPECT_EQ(data.description(data.root()), "an object of 'os.system'");
  ASSERT_EQ(data.arguments(data.root()).size(), 1u);
  EXPECT_EQ(data.at(data.arguments(data.root())[0]).text, "false");
  EXPECT_FALSE(data.at(data.root()).state);
  EXPECT_TRUE(data.arguments(data.arguments(data.root())[0]).empty());
}

TEST(PickleData, TheLastOfEqualKeysCounts) {
  const PickleData data = parsed(pickle_of(pickled_dictionary({{"a", "K\x01"}, {"a", "K\x02"}})));
  EXPECT_EQ(data.at(data.value(data.root(), "a").value()).integer, 2);
}

TEST(PickleData, AListMayContainItself) {
  const PickleData data = parsed(pickle_of("]q\1h\1a"));
  EXPECT_THAT(data.at(data.root()).parts, ElementsAre(data.root()));
}

TEST(PickleData, RefusesWhatIsBroken) {
  const auto refusal = [](const std::string& pickle, const std::string& text) {
    EXPECT_THAT([&] { parsed(pickle); }, refused_with(text)) << text;
  };
  refusal("", "p.pkl: byte 0: opcode of 1 bytes, of which 0 are there");
  refusal("\x80\x02}", "p.pkl: byte 3: opcode");
  refusal("\x80\x01}.", "pickle protocol 1; 2 to 5 are read");
  refusal("\x80\x02.", "the pickle ends with 0 values");
  refusal("\x80\x02}}.", "the pickle ends with 2 values");
  refusal(pickle_of("(N"), "the pickle ends with 1 values");
  refusal(pickle_of("i"), "opcode 0x69 of a pickle, which no state dictionary needs");
  refusal(pickle_of("t"), "takes values up to a mark that is not there");
  refusal(pickle_of("N("
                    "a"),
          "takes a value that is not there");
  refusal(pickle_of("h\x05"), "place 5 of the memo is empty");
  refusal(pickle_of("NNs"), "takes a value that is not there");
  refusal(pickle_of("]NNs"), "adds to a list");
  refusal(pickle_of("}(Nu"), "a key without a value");
  refusal(pickle_of("N)R"), "an object of what is no class");
  refusal(pickle_of(pickled_global("a", "b") + "NR"), "an object of what is no class");
  refusal(pickle_of("NNb"), "attributes of what is no object");
  refusal(pickle_of(pickled_global("a", "b") + ")RNbNb"), "or for a second time");
  refusal(pickle_of("NN\x93"), "the name of a class is no text");
  refusal(pickle_of(pickled_global("a", std::string(300, 'b'))), "the name of a class has 302 bytes; at most 200");
  refusal(pickle_of("\x8a\x09" + std::string(9, '\1')), "a whole number of 9 bytes; at most 8");
  refusal("\x80\x02X" + little(0xffffffff, 4) + "a", "text of 4294967295 bytes, of which 1 are there");
}

TEST(PickleData, BoundsItsMemory) {
  EXPECT_THAT([] { parsed("\x80\x02" + std::string((1u << 20) + 1, 'N') + "."); },
              refused_with("a pickle of more than 1048576 values"));
}

}  // namespace pickle_data_test
}  // namespace gainlens::formats
