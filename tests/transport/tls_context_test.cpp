// Which part of a TLS configuration an error names. The handshakes of tests/kv, tests/rpc and
// tests/cli test valid certificates.
#include "transport/tls_context.hpp"

#include <gtest/gtest.h>

#include <ostream>
#include <string>

namespace weir::transport {
namespace {

using Part = TlsFault::Part;

struct Row {
  const char* name;
  TlsFiles files;
  Part part;
  std::string value;

  friend void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }
};

class UnusableFiles : public testing::TestWithParam<Row> {};

TEST_P(UnusableFiles, are_named_with_the_reason) {
  for (const TlsSide side : {TlsSide::server, TlsSide::client}) {
    const auto made = make_tls_context(side, GetParam().files);
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().part, GetParam().part);
    EXPECT_EQ(made.error().value, GetParam().value);
    EXPECT_FALSE(made.error().reason.empty());
  }
}

INSTANTIATE_TEST_SUITE_P(
    , UnusableFiles,
    testing::Values(
        Row{"certificate", {.certificate = "/nowhere.crt"}, Part::certificate, "/nowhere.crt"},
        Row{"key", {.key = "/nowhere.key"}, Part::key, "/nowhere.key"},
        Row{"authorities", {.authorities = "/nowhere.ca"}, Part::authorities, "/nowhere.ca"},
        Row{"ciphers", {.ciphers = "no-such-cipher"}, Part::ciphers, "no-such-cipher"},
        Row{"ciphersuites", {.ciphersuites = "no-such-suite"}, Part::ciphersuites, "no-such-suite"}),
    [](const auto& row) { return row.param.name; });

TEST(TlsContext, of_a_client_without_files_trusts_the_systems_authorities) {
  EXPECT_TRUE(make_tls_context(TlsSide::client, {.system_authorities = true}));
}

TEST(TlsContext, takes_nothing_older_than_tls_1_2) {
  const auto made = make_tls_context(TlsSide::client, {});
  ASSERT_TRUE(made);
  EXPECT_EQ(SSL_CTX_get_min_proto_version((*made)->native_handle()), TLS1_2_VERSION);
}

}  // namespace
}  // namespace weir::transport
