// An attacker: repeats one misdeed until it is killed, and writes a byte for each repetition.
//
// usage: bystander_attacker resp|rpc ADDRESS MISDEED SEED
#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <asio/co_spawn.hpp>
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "tests/bystander/misdeeds.hpp"

int main(int argc, char** argv) {
  using namespace weir::bystander;
  const Misdeed* misdeed = argc == 5 ? misdeed_named(argv[3]) : nullptr;
  if (misdeed == nullptr)
    return std::fprintf(stderr, "usage: bystander_attacker resp|rpc ADDRESS MISDEED SEED\n"), 2;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // The server is to be attacked, not the machine's processors.
  [[maybe_unused]] const int niceness = ::nice(10);
  ::signal(SIGPIPE, SIG_IGN);
  // The reader of the pipe may be slow; then some deeds are not counted.
  ::fcntl(STDOUT_FILENO, F_SETFL, O_NONBLOCK);
  asio::io_context io(1);
  const std::string_view protocol = argv[1];
  Attack attack{io, protocol == "rpc" ? Protocol::rpc : Protocol::resp, argv[2],
                std::mt19937_64(std::strtoull(argv[4], nullptr, 10)),
                [] { [[maybe_unused]] const ssize_t written = ::write(STDOUT_FILENO, ".", 1); }};
  try {
    if (misdeed->alone != nullptr) misdeed->alone(attack);
    asio::co_spawn(io, misdeed->with_lines(attack), [](const std::exception_ptr& thrown) {
      if (thrown) std::rethrow_exception(thrown);
    });
    io.run();
  } catch (const std::exception& why) {
    std::fprintf(stderr, "%s over %s: %s\n", argv[3], argv[2], why.what());
  }
  return 1;  // no misdeed ends by itself
}
