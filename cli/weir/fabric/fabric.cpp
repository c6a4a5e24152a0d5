// `weir fabric`: the hosts of a network on this machine.
#include <algorithm>
#include <cstdio>

#include "cli/weir/command.hpp"
#include "cli/weir/fabric/fabric_command.hpp"
#include "screen/terminal.hpp"
#include "spelling/did_you_mean.hpp"

namespace weir::command {

constexpr std::string_view fabric_help = R"(Usage: weir fabric up [OPTIONS] NETWORK.toml
       weir fabric up [OPTIONS] --hosts N
       weir fabric run --host HOST [OPTIONS OF weir run] [--] COMMAND [ARG...]
       weir fabric run [--verify] [--seed N] [--pcap DIR] [--report FILE.html]
                       [--stop-at TIME] SCENARIO.toml
       weir fabric test [--seeds 1..N] SCENARIO.toml
       weir fabric ssh [--fabric NAME] HOST [COMMAND...]
       weir fabric list [--json] [NAME]
       weir fabric ps [--json] [NAME]
       weir fabric top [--interval SECONDS] [--count N] [NAME]
       weir fabric link [--fabric NAME] HOST down|up
       weir fabric link [--fabric NAME] SWITCH SWITCH down|up
       weir fabric down [NAME | --all]

Makes the hosts of a network on this machine, without root, and runs programs in them on Weir's NIC: RoCEv2 packets go
from host to host as between machines. Each host has a name, an address, an interface and a /dev/shm of its own; files
and users are those of the machine. It runs in real time and models no bandwidth: to see that, weir sim.

  Two hosts, h1 and h2, and a measurement between them:
    $ weir fabric up --hosts 2
    $ weir fabric run --host h1 -- ib_write_bw & sleep 1
    $ weir fabric run --host h2 -- ib_write_bw h1
    $ weir fabric down

  The hosts of a planned network, and MPI on four of them:
    $ weir fabric up network.toml
    $ weir fabric run --host h1 -- mpirun --host h1,h2,h3,h4 --mca plm_rsh_agent "weir fabric ssh" ./program

  A cable that is out for a second; the packets of h2, for Wireshark; every hundredth packet of h2 lost:
    $ weir fabric link h2 down; sleep 1; weir fabric link h2 up
    $ weir fabric up --hosts 2 --pcap captures
    $ weir fabric up --hosts 2 --fault 'drop rate=1% host=h2'

  Two programs across a simulated switch, in virtual time (docs/twin.md): what they measure is the network's:
    $ weir fabric run --verify twin/scenarios/two-programs.toml

  up         make the hosts, and return when programs can run in them
  run        run a program in a host: weir run, in there; or, with a scenario file, its [[program]]s across its network
             in virtual time, the same again each time
  test       run a scenario with many seeds, and name those with which a program failed
  ssh        the same for launchers that expect ssh: the words are a command line for the shell
  list       the networks that are up; with NAME the hosts of one: address, link, number of programs
  ps         the programs in the hosts, with their process numbers on this machine
  top        what the hosts send and receive per second, until q; where the output is no terminal, a table each time
  link       pull the cable of a host out of its switch, or that between two switches, or plug it in again; the switches
             then route around it
  down       end a network with all programs in it (SIGTERM, then SIGKILL after 2 s)

Options:
  --name NAME    name of the new network (default: that of the file, or net)
  --hosts N      make hosts h1 to hN, without a file
  --flat         put the hosts of the file on one switch, instead of on those of the file, which route between them
  --mtu BYTES    MTU of the hosts' interfaces (default 9000, or what the frames of the network file leave): a RoCE MTU
                 of 4096 needs 4200
  --pcap DIR     write the packets that programs of each host send and receive to DIR/HOST.pcapng; with a scenario,
                 also what leaves each port of a switch, DIR/SWITCH-PORT.pcapng
  --faults FILE  what fails on purpose in every program (weir faults list); host=h3 in a line: in those of h3
  --fault FAULT  one such fault; may be repeated
  --host HOST    the host for run
  --verify       run the scenario twice, and say what differs first
  --seed N       seed of the scenario's random numbers (default: the file's)
  --report FILE  write a page with pictures of the run's queues, pauses and ports, as weir sim does
  --stop-at TIME stop the scenario at that virtual time (12.5ms), print the numbers of its processes and what each
                 thread waits for, and keep them for a debugger until Enter or Ctrl-C
  --seeds A..B   seeds for test, both included (default 1..10)
  --fabric NAME  which network, if there are several
  --interval SECONDS
                 between two looks of top (default 1)
  --count N      so many tables of top, and no screen
  --all          end all networks
  --json         print JSON, for programs
  --help         this text

Without root it takes user namespaces; where the machine refuses them, up says what permits them. Nothing is left behind
when a part is killed: all ends with the network's keeper, which `up` leaves running.

Exit status: 0; 1 it failed; 2 the command line is invalid; 3 the network file is invalid. run and ssh: the command's,
125 if there is no such host; run with a scenario, and test: 4 a program failed or a run ended early, 5 two
runs differ.
)";

namespace {

struct FabricSubcommand {
  std::string_view name;
  int (*function)(std::span<const std::string>);
};
constexpr FabricSubcommand fabric_subcommands[] = {
    {"up", fabric_up},   {"run", fabric_run},   {"test", fabric_test},
    {"ssh", fabric_ssh}, {"list", fabric_list}, {"top", fabric_top},
    {"ps", fabric_ps},   {"link", fabric_link}, {"down", fabric_down}};

}  // namespace

std::expected<std::vector<std::string>, int> read_fabric_words(std::string_view subcommand,
                                                               std::span<const std::string> arguments,
                                                               std::span<const FabricOption> options) {
  const auto wrong = [&](const std::string& what) {
    return std::unexpected(complain("fabric " + std::string(subcommand), what + "; see weir fabric --help"));
  };
  std::vector<std::string> words;
  for (std::size_t next = 0; next < arguments.size(); ++next) {
    const std::string& word = arguments[next];
    if (!word.starts_with('-')) {
      words.push_back(word);
      continue;
    }
    if (word == "--help" || word == "-h") return std::unexpected(print_help("fabric", fabric_help, 1));
    const auto equals = word.find('=');
    const auto option =
        std::ranges::find(options, std::string_view(word).substr(0, equals), &FabricOption::name);
    if (option == options.end()) {
      std::vector<std::string_view> known{"--help"};
      for (const FabricOption& each : options) known.push_back(each.name);
      return wrong("it has no option " + word + did_you_mean(word, known));
    }
    if (option->flag != nullptr) {
      if (equals != std::string::npos) return wrong(std::string(option->name) + " has no value");
      *option->flag = true;
      continue;
    }
    if (equals == std::string::npos && next + 1 == arguments.size()) return wrong(word + " wants a value");
    const std::string value = equals == std::string::npos ? arguments[++next] : word.substr(equals + 1);
    const bool more = option->between != '\0' && !option->value->empty();
    *option->value = more ? *option->value + option->between + value : value;
  }
  return words;
}

int fabric(std::span<const std::string> arguments) {
  if (arguments.empty()) {
    screen::print_wrapped(stderr, fabric_help);
    return fabric_misused;
  }
  const std::string& word = arguments.front();
  if (word == "--help" || word == "-h" || word == "help") return print_help("fabric", fabric_help, 1);
  for (const auto& [name, function] : fabric_subcommands)
    if (name == word) return function(arguments.subspan(1));
  std::vector<std::string_view> known;
  for (const auto& subcommand : fabric_subcommands) known.push_back(subcommand.name);
  return complain("fabric",
                  "it does not know '" + word + "'" + did_you_mean(word, known) + "; see weir fabric --help");
}

}  // namespace weir::command
