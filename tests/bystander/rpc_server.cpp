// The RPC server that is attacked: a store of texts behind a token, listening on each given address. It
// prints one address per line, then serves until it is killed.
//
// usage: bystander_rpc_server CERTIFICATE KEY ADDRESS...
#include <sys/prctl.h>

#include <csignal>
#include <cstdio>
#include <unordered_map>

#include "rpc/server.hpp"
#include "tests/bystander/line.hpp"
#include "tests/bystander/services.hpp"

namespace weir::bystander {
namespace {
std::unordered_map<std::string, std::string> kept;
}

void ping() {}
std::string echo(std::string text) { return text; }
std::uint64_t count(std::vector<std::string> texts) { return texts.size(); }
void put(std::string key, std::string text) { kept[std::move(key)] = std::move(text); }
std::string get(std::string key) { return kept[key]; }

}  // namespace weir::bystander

int main(int argc, char** argv) {
  using namespace weir;
  if (argc < 4) return std::fprintf(stderr, "usage: bystander_rpc_server CERTIFICATE KEY ADDRESS...\n"), 2;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  asio::io_context io(1);
  rpc::ServerOptions options;
  options.transport.engine = &bystander::engine_of(io);
  options.transport.tls.certificate_file = argv[1];
  options.transport.tls.key_file = argv[2];
  options.authentication.authenticate = [](const rpc::Credentials& shown) -> rpc::Result<rpc::Identity> {
    if (shown.token == bystander::password) return rpc::Identity{"a client"};
    return rpc::fail(rpc::Errc::unauthenticated, "another token is needed");
  };
  rpc::Server server(io, options);
  server.add<bystander::ping, bystander::echo, bystander::count, bystander::put, bystander::get>();
  for (int i = 3; i < argc; ++i) {
    const auto address = server.listen(argv[i]);
    if (!address) return std::fprintf(stderr, "%s\n", address.error().what.c_str()), 1;
    std::puts(address->c_str());
  }
  std::fflush(stdout);
  io.run();
  return 0;
}
