// What WEIR_WIRE_KEY may say.
#include "verbs/nic/wire_key.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

namespace weir::verbs {
namespace {

constexpr char digits[] = "000102030405060708090A0b0c0d0e0f";

class WireKey : public testing::Test {
 protected:
  WireKey() : path_(testing::TempDir() + "weir-key-XXXXXX") { ::close(::mkstemp(path_.data())); }
  ~WireKey() override { ::unlink(path_.c_str()); }
  std::string path_;
};

TEST_F(WireKey, is_none_only_where_nothing_is_said) {
  const auto none = read_wire_key(nullptr);
  ASSERT_TRUE(none);
  EXPECT_FALSE(*none);
}

TEST_F(WireKey, is_the_same_from_the_variable_and_from_a_file) {
  std::ofstream(path_) << digits << "\n";
  for (const char* const said : {digits, path_.c_str()}) {
    const auto key = read_wire_key(said);
    ASSERT_TRUE(key && *key) << said;
    EXPECT_EQ((*key)->first, 0x0706050403020100u);
    EXPECT_EQ((*key)->second, 0x0f0e0d0c0b0a0908u);
  }
}

TEST_F(WireKey, that_is_no_key_is_an_error_and_never_no_key) {
  const std::string good = digits;
  for (const std::string& said : {std::string(), good.substr(1), good + "0", "-" + good.substr(1),
                                  good.substr(1) + "g", path_ + ".not", testing::TempDir()}) {
    const auto key = read_wire_key(said.c_str());
    ASSERT_FALSE(key) << said;
    EXPECT_NE(key.error().what.find("WEIR_WIRE_KEY"), std::string::npos) << key.error().what;
  }
  for (const std::string& held : {std::string(), good.substr(1), good + good, "0x" + good.substr(2)}) {
    std::ofstream(path_) << held;
    EXPECT_FALSE(read_wire_key(path_.c_str())) << held;
  }
}

TEST_F(WireKey, that_others_can_read_is_refused) {
  std::ofstream(path_) << digits;
  ASSERT_EQ(::chmod(path_.c_str(), 0640), 0);
  const auto key = read_wire_key(path_.c_str());
  ASSERT_FALSE(key);
  EXPECT_NE(key.error().what.find("mode 600"), std::string::npos) << key.error().what;
}

}  // namespace
}  // namespace weir::verbs
