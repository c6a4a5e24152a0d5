// weir: the entrance to all of the project's tools.
#include <cstdio>
#include <string>
#include <vector>

#include "cli/client/standard_output.hpp"
#include "cli/weir/command.hpp"
#include "cli/weir/other_program.hpp"
#include "screen/terminal.hpp"
#include "spelling/did_you_mean.hpp"

namespace weir::command {
namespace {

struct Subcommand {
  std::string_view name;
  int (*function)(std::span<const std::string>) = nullptr;  // null: a separate program
};
constexpr Subcommand subcommands[] = {{"run", run},
                                      {"devices", devices},
                                      {"trace", trace},
                                      {"faults", faults},
                                      {"seeds", seeds},
                                      {"fabric"},
                                      {"sockets", sockets},
                                      {"stat", stat},
                                      {"plan"},
                                      {"sim"},
                                      {"collector"},
                                      {"rpc"},
                                      {"tensor"},
                                      {"completion", completion}};

constexpr std::string_view help = R"help(Usage: weir COMMAND [ARG...]

Weir puts RDMA under the programs people already run.

  run         run any verbs program on the software NIC: no hardware, no kernel module
                $ weir run -- ibv_devinfo
                $ weir run -- ib_write_lat & weir run -- ib_write_lat localhost
  trace       run one, and record its work requests and completions, as text or as packets
                $ weir trace --pcap ping.pcapng -- ibv_rc_pingpong localhost
  faults      check a file of faults for weir run --faults, or list the kinds
                $ weir run --fault 'drop qp=1 psn=5' -- ib_send_bw
  seeds       run a program on a NIC that does whatever devices may do, with many seeds; what makes it fail, and why
                $ weir seeds 200 -- ./my_test
  fabric      make the hosts of a network on this machine, and run programs in them; no root
                $ weir fabric up --hosts 2
                $ weir fabric run --host h1 -- ib_write_bw & sleep 1
                $ weir fabric run --host h2 -- ib_write_bw h1
  devices     list RDMA devices, hardware and software
                $ weir devices --json
  sockets     list TCP connections of programs under `weir run --sockets`: which use RDMA, why others do not
                $ weir sockets
  stat        watch what the software NIC does, program by program
                $ weir stat
  plan        plan a lossless network: PFC headroom, ECN marks, deadlocks, config_db.json
                $ weir plan network.toml --sonic out
  sim         simulate one: PFC, ECN, DCQCN under a workload, with pictures
                $ weir sim scenario.toml -o out
  collector   receive a simulation's or a switch's counters, for files and Prometheus
                $ weir collector --metrics 127.0.0.1:9105 & weir sim scenario.toml --telemetry 127.0.0.1:8081
  rpc         list and call the functions of a server made with rpc/
                $ weir rpc call tcp://127.0.0.1:9000 shop.add '[2, 3]'
  tensor      list and fetch the named, versioned arrays of a hub
                $ weir tensor ls rdma://127.0.0.1:7800
  completion  let your shell complete these commands
                $ eval "$(weir completion bash)"

`weir help COMMAND` shows a command's options, `weir version` the version. Related programs: weir-server (a key-value
server over TCP and RDMA), weir-cli (its client), weir-benchmark (measures it), weir-check (checks its files).
)help";

int dispatch(std::span<const std::string> arguments) {
  if (arguments.empty()) {
    screen::print_wrapped(stderr, help);
    return 2;
  }
  const auto& word = arguments.front();
  if (word == "help" && arguments.size() == 2) {
    const std::vector<std::string> asked = {arguments[1], "--help"};
    return dispatch(asked);
  }
  if (word == "--help" || word == "-h" || word == "help") {
    screen::print_wrapped(stdout, help);
    return client::output_arrived("weir", 0);
  }
  if (word == "--version" || word == "version") {
    if (arguments.size() > 1 && arguments[1] != "--help") return complain("version", "it takes no words");
    std::puts("weir " WEIR_VERSION);
    return client::output_arrived("weir", 0);
  }
  for (const auto& [name, function] : subcommands)
    if (name == word)
      return function == nullptr ? become_other_program(word, arguments.subspan(1))
                                 : client::output_arrived("weir " + word, function(arguments.subspan(1)));
  for (const std::string_view program : {"server", "cli", "benchmark", "check"})
    if (word == program) {
      std::fprintf(stderr, "weir: '%s' is no command; see weir-%s --help\n", word.c_str(), word.c_str());
      return 2;
    }
  std::vector<std::string_view> known{"help", "version"};
  for (const auto& subcommand : subcommands) known.push_back(subcommand.name);
  std::fprintf(stderr, "weir: '%s' is no command%s; see weir --help\n", word.c_str(),
               did_you_mean(word, known).c_str());
  return 2;
}

}  // namespace

}  // namespace weir::command

int main(int count, char** values) {
  const std::vector<std::string> arguments(values + 1, values + count);
  return weir::command::dispatch(arguments);
}
