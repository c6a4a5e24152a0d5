#include "cli/weir/launch/launch.hpp"

#include <arpa/inet.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>

#include "cli/weir/command.hpp"
#include "cli/weir/launch/device_names.hpp"
#include "cli/weir/launch/drop_in_libraries.hpp"
#include "cli/weir/launch/in_host.hpp"
#include "cli/weir/launch/program_file.hpp"
#include "cli/weir/whole_file.hpp"
#include "faults/language.hpp"
#include "rnic/weak/weaknesses.hpp"
#include "sockets/networks.hpp"
#include "sockets/rules.hpp"
#include "spelling/did_you_mean.hpp"

namespace weir::command {
namespace {

namespace fs = std::filesystem;

std::string in_front(const std::string& what, const char* before) {
  return before && *before ? what + ":" + before : what;
}

std::optional<std::string> first_that_is_no_address(std::string_view list) {
  for (bool more = !list.empty(); more;) {
    const std::size_t comma = list.find(',');
    const std::string word(list.substr(0, comma));
    std::array<unsigned char, sizeof(in6_addr)> address{};
    if (::inet_pton(AF_INET6, word.c_str(), address.data()) != 1 &&
        ::inet_pton(AF_INET, word.c_str(), address.data()) != 1)
      return word;
    more = comma != std::string_view::npos;
    if (more) list.remove_prefix(comma + 1);
  }
  return std::nullopt;
}

constexpr const char* verbs_library = "/libibverbs.so.1";
constexpr const char* cm_library = "/librdmacm.so.1";
constexpr const char* view_library = "/libweir_view.so";
constexpr const char* look_library = "/libweir_look.so";
constexpr const char* heap_library = "/libweir_heap.so";
constexpr const char* rsocket_library = "/librspreload.so";
constexpr const char* sockets_library = "/libweir_sockets.so";
constexpr const char* twin_library = "/libweir_twin.so";
constexpr const char* check_library = "/libweir_check.so";

// The dynamic linker splits LD_PRELOAD at spaces and colons, LD_LIBRARY_PATH at colons and semicolons, and
// has no quoting. If the path has a space, the libraries are preloaded by name and found through
// LD_LIBRARY_PATH. A path with a colon or semicolon cannot be used.
bool linker_can_be_told(const std::string& directory) {
  return directory.find_first_of(":;") == std::string::npos;
}
bool can_be_preloaded_by_path(const std::string& directory) {
  return directory.find(' ') == std::string::npos;
}
std::string to_preload(const std::string& directory, std::string_view library) {
  return can_be_preloaded_by_path(directory) ? directory + std::string(library)
                                             : std::string(library.substr(1));
}

bool readable(const std::string& file) { return ::access(file.c_str(), R_OK) == 0; }

// With a seed in front, drawn if it has none: all processes of the program get the same.
std::string weak_words_of(const Launch& launch) {
  const std::string& words = launch.weak_words;
  if (!words.empty() && words.front() >= '0' && words.front() <= '9') return words;
  std::uint32_t seed = 0;
  if (::getrandom(&seed, sizeof seed, 0) != sizeof seed) seed = static_cast<std::uint32_t>(::getpid());
  return std::to_string(seed) + (words.empty() ? "" : "," + words);
}

// Sets what the program and all its children inherit.
void set_environment(const Launch& launch, const std::string& libraries, const std::string& names) {
  ::setenv("LD_LIBRARY_PATH", in_front(libraries, std::getenv("LD_LIBRARY_PATH")).c_str(), 1);
  ::setenv("WEIR_RDMA_PROVIDER", "weir", 1);
  ::setenv("WEIR_DEVICES", names.c_str(), 1);
  if (!launch.gids.empty()) ::setenv("WEIR_GIDS", launch.gids.c_str(), 1);
  if (!launch.mtu.empty()) ::setenv("WEIR_MTU", launch.mtu.c_str(), 1);
  if (!launch.sockets_peers.empty()) ::setenv("WEIR_SOCKETS_PEERS", launch.sockets_peers.c_str(), 1);
  if (launch.no_process_vm) ::setenv("WEIR_NO_PROCESS_VM", "1", 1);
  if (launch.packets) ::setenv("WEIR_PACKETS", "1", 1);
  if (!launch.spin.empty()) ::setenv("WEIR_SPIN", launch.spin.c_str(), 1);
  if (!launch.carrier.empty()) ::setenv("WEIR_CARRIER", launch.carrier.c_str(), 1);
  if (launch.weak) ::setenv("WEIR_WEAK", weak_words_of(launch).c_str(), 1);
  if (!launch.faults_file.empty())
    ::setenv("WEIR_FAULTS", std::filesystem::absolute(launch.faults_file).c_str(), 1);
  if (!launch.faults.empty()) ::setenv("WEIR_FAULT", launch.faults.c_str(), 1);
  if (launch.has_faults() && !launch.json.empty())
    ::setenv("WEIR_FAULTS_JSON", fs::absolute(launch.json).c_str(), 1);
  for (const auto& [name, value] : launch.environment) ::setenv(name.c_str(), value.c_str(), 1);
  // A program that was built with AddressSanitizer ends at once if a library comes before the sanitizer's.
  // Ours do without that order. What the user has set behind it counts.
  ::setenv("ASAN_OPTIONS", in_front("verify_asan_link_order=0", std::getenv("ASAN_OPTIONS")).c_str(), 1);
  const auto preload = [&](const char* name) {
    ::setenv("LD_PRELOAD", in_front(to_preload(libraries, name), std::getenv("LD_PRELOAD")).c_str(), 1);
  };
  // A program's DT_RPATH precedes LD_LIBRARY_PATH, and a script may set LD_LIBRARY_PATH anew. A library that
  // is already loaded precedes both: the dynamic linker finds it by its soname.
  preload(verbs_library);
  preload(cm_library);
  if (readable(libraries + view_library)) preload(view_library);  // most programs work without it
  // A library of sockets waits by rules of its own; without this one programs work, and sleep. In virtual
  // time a look costs what a sleep does.
  const bool in_virtual_time = std::getenv("WEIR_TWIN") != nullptr;  // a program of `weir fabric run`
  if (!in_virtual_time && !launch.rsockets && !launch.sockets && launch.spin != "0" &&
      readable(libraries + look_library))
    preload(look_library);
  // Behind the libraries of sockets, so that what these ask of the kernel is controlled, too.
  if (in_virtual_time) preload(twin_library);
  if (launch.rsockets) preload(rsocket_library);
  if (launch.sockets) preload(sockets_library);
  if (launch.share_memory) preload(heap_library);
  if (!launch.check) return;
  ::setenv("WEIR_CHECK", launch.check_words.empty() ? "on" : launch.check_words.c_str(), 1);
  for (const auto& [name, file] : {std::pair{"WEIR_CHECK_JSON", &launch.json},
                                   std::pair{"WEIR_CHECK_SUPPRESSIONS", &launch.check_suppressions}})
    if (!file->empty()) ::setenv(name, fs::absolute(*file).c_str(), 1);
  preload(check_library);  // last, so that it stands in front of the verbs library
}

bool is_a_spin(std::string_view words) {
  unsigned us = 0;
  const char* const end = words.data() + words.size();
  const auto [at, error] = std::from_chars(words.data(), end, us);
  return error == std::errc() && at == end && us <= 1'000'000;
}

bool is_a_carrier(std::string_view words) {
  if (words == "udp" || words == "tcp" || words == "auto") return true;
  const auto colon = words.find(':');
  if (colon == std::string_view::npos) return false;
  const auto word = words.substr(0, colon), port = words.substr(colon + 1);
  std::uint16_t number = 0;
  const auto [at, error] = std::from_chars(port.data(), port.data() + port.size(), number);
  return (word == "tcp" || word == "auto") && error == std::errc() && at == port.data() + port.size() &&
         number != 0;
}

// What is wrong with the faults that are asked for; empty: nothing.
std::string why_faults_cannot_be(const Launch& launch) {
  if (!launch.faults_file.empty()) {
    const auto text = read_whole_file(launch.faults_file);
    if (!text) return "--faults: " + text.error();
    if (const auto plan = faults::read_plan(*text); !plan)
      return launch.faults_file + ": " + faults::text_of(plan.error());
  }
  if (const auto plan = faults::read_plan(launch.faults); !plan) return "--fault: " + plan.error().what;
  return {};
}

// The message that `option` is not available because its library is missing. Empty: the library is there.
std::string lacks(const std::string& libraries, std::string_view option, const char* library,
                  std::string_view target) {
  if (readable(libraries + library)) return {};
  return std::string(option) + " needs " + libraries + library +
         ", which is not there or cannot be read; build it (cmake --build --preset release --target " +
         std::string(target) + "), or name a directory that has it with --lib-dir";
}

// What is wrong with the options about --check; empty: nothing.
std::string wrong_check_option(const Launch& launch) {
  if (!launch.check) {
    if (!launch.json.empty() && !launch.has_faults())
      return "--json is for the findings of --check and for what --faults did; give one of them, too";
    if (!launch.check_suppressions.empty())
      return "--suppressions is for the findings of --check; give that, too";
    return {};
  }
  std::string_view words = launch.check_words;
  while (!words.empty()) {
    const std::string_view word = words.substr(0, words.find(','));
    if (word != "strict" && word != "stop")
      return "--check knows the words strict and stop, like --check=strict,stop, not '" + std::string(word) +
             "'";
    words.remove_prefix(std::min(word.size() + 1, words.size()));
  }
  if (!launch.check_suppressions.empty() && !readable(launch.check_suppressions))
    return "cannot read " + launch.check_suppressions + ": " + std::strerror(errno);
  return {};
}

}  // namespace

std::vector<LaunchOption> Launch::options() {
  return {{.name = "--lib-dir", .value = &library_directory},
          {.name = "--devices", .value = &devices},
          {.name = "--name", .value = &name},
          {.name = "--gid", .value = &gids, .list = true},
          {.name = "--mtu", .value = &mtu},
          {.name = "--share-memory", .flag = &share_memory},
          {.name = "--no-process-vm", .flag = &no_process_vm},
          {.name = "--packets", .flag = &packets},
          {.name = "--spin", .value = &spin},
          {.name = "--carrier", .value = &carrier},
          {.name = "--host", .value = &host},
          {.name = "--fabric", .value = &fabric},
          {.name = "--faults", .value = &faults_file},
          {.name = "--fault", .value = &faults, .list = true, .between = ';'},
          {.name = "--rsockets", .flag = &rsockets},
          {.name = "--sockets", .flag = &sockets},
          {.name = "--sockets-peers", .value = &sockets_peers, .list = true},
          {.name = "--check", .value = &check_words, .flag = &check},
          {.name = "--weak", .value = &weak_words, .flag = &weak},
          {.name = "--json", .value = &json},
          {.name = "--suppressions", .value = &check_suppressions},
          {.name = "--help", .flag = &help},
          {.name = "-h", .flag = &help}};
}

std::expected<std::span<const std::string>, int> read_launch_options(std::string_view subcommand,
                                                                     std::span<const std::string> arguments,
                                                                     std::span<const LaunchOption> options,
                                                                     std::string_view help) {
  std::size_t next = 0;
  for (; next < arguments.size() && arguments[next].starts_with('-'); ++next) {
    const auto& word = arguments[next];
    if (word == "--") {
      ++next;
      break;
    }
    const auto equals = word.find('=');
    const auto option =
        std::ranges::find(options, std::string_view(word).substr(0, equals), &LaunchOption::name);
    const bool known = option != options.end();
    if (known && option->flag != nullptr && equals == std::string::npos) {
      *option->flag = true;
      continue;
    }
    const bool behind = equals == std::string::npos;
    if (known && option->flag != nullptr) *option->flag = true;
    if (!known || option->value == nullptr || (behind && next + 1 == arguments.size()))
      return std::unexpected(complain(
          subcommand, option_complaint(word, help) + "; see weir " + std::string(subcommand) + " --help"));
    const std::string given = behind ? arguments[++next] : word.substr(equals + 1);
    *option->value =
        option->list && !option->value->empty() ? *option->value + option->between + given : given;
  }
  return arguments.subspan(next);
}

int become(std::string_view subcommand, const Launch& launch) {
  if (launch.command.empty())
    return complain(subcommand,
                    "no command given; for example: weir " + std::string(subcommand) + " -- ibv_devinfo");
  constexpr std::string_view mtus[] = {"256", "512", "1024", "2048", "4096"};
  if (!launch.mtu.empty() && std::ranges::find(mtus, launch.mtu) == std::end(mtus))
    return complain(subcommand,
                    "--mtu wants one of the MTUs that RoCE has, 256, 512, 1024, 2048 or 4096, not " +
                        launch.mtu + " (an Ethernet interface of 1500 bytes carries 1024)");
  if (const auto wrong = first_that_is_no_address(launch.gids))
    return complain(subcommand,
                    "--gid wants an IPv4 or IPv6 address, like 10.0.0.1 or fd00::1, not '" + *wrong + "'");
  if (!launch.spin.empty() && !is_a_spin(launch.spin))
    return complain(subcommand, "--spin wants microseconds, 0 to 1000000, not '" + launch.spin + "'");
  if (!launch.carrier.empty() && !is_a_carrier(launch.carrier))
    return complain(subcommand,
                    "--carrier wants udp, tcp or auto, or the last two with a port (tcp:7000), not '" +
                        launch.carrier + "'");
  if (const std::string wrong = why_faults_cannot_be(launch); !wrong.empty())
    return complain(subcommand, wrong);
  if (const std::string wrong = wrong_check_option(launch); !wrong.empty())
    return complain(subcommand, wrong);
  if (launch.weak)
    if (const auto plan = rnic::weak::read_plan(weak_words_of(launch)); !plan)
      return complain(subcommand, "--weak: " + plan.error());
  const auto names = device_names(launch.name, launch.devices);
  if (!names) return complain(subcommand, names.error());
  const auto libraries = find_drop_in_libraries(launch.library_directory);
  if (!libraries) return complain(subcommand, libraries.error(), 126);
  if (!linker_can_be_told(*libraries))
    return complain(
        subcommand,
        *libraries +
            " has a colon or semicolon in it, at which the dynamic linker would cut it off; copy "
            "the libraries to a path without, or link to them from one, and name that with --lib-dir",
        126);
  std::string lacking;
  if (launch.share_memory) lacking = lacks(*libraries, "--share-memory", heap_library, "weir_heap");
  if (launch.check && lacking.empty())
    lacking = lacks(*libraries, "--check", check_library, "weir_check_verbs");
  if (launch.rsockets && lacking.empty())
    lacking = lacks(*libraries, "--rsockets", rsocket_library, "weir_rspreload");
  if (launch.sockets && lacking.empty())
    lacking = lacks(*libraries, "--sockets", sockets_library, "weir_preload");
  if (launch.sockets) {
    if (const auto rules = sockets::read_rules(std::getenv("WEIR_SOCKETS_RULES")); !rules)
      return complain(subcommand, "WEIR_SOCKETS_RULES: " + rules.error() +
                                      "; rules are like 'off port 22, on program redis-*, off'");
  }
  if (!launch.sockets_peers.empty()) {
    if (!launch.sockets)
      return complain(subcommand, "--sockets-peers says whom --sockets asks; give that, too");
    if (const auto networks = sockets::Networks::parse(launch.sockets_peers); !networks)
      return complain(subcommand,
                      "--sockets-peers: " + networks.error() + "; networks are like 10.0.0.0/8,fd00::/8");
  }
  if (launch.sockets && launch.rsockets)
    lacking = "--sockets and --rsockets take the same calls; give one of them";
  if (!lacking.empty()) return complain(subcommand, lacking, 126);
  if (launch.command.front().empty())
    return complain(subcommand, "the command is an empty word; is a variable behind it unset?", 127);
  const auto program = find_program(launch.command.front(), std::getenv("PATH"));
  if (!program) return complain(subcommand, program.error().what, program.error().status);
  if (const auto why = why_libraries_cannot_be_replaced(*program); !why.empty())
    return complain(subcommand, why, 126);
  if (!can_be_preloaded_by_path(*libraries) && looks_in_its_own_path_first(*program))
    return complain(
        subcommand,
        *program + " has a DT_RPATH, which only a preloaded library precedes, and LD_PRELOAD cannot name " +
            *libraries +
            ", which has a space in it; link to that directory from a path without and name the "
            "link with --lib-dir",
        126);

  if (!launch.fabric.empty() && launch.host.empty())
    return complain(subcommand, "--fabric says where --host is; give that, too");
  if (!launch.host.empty())
    if (const auto ended = go_on_in_host(subcommand, launch.fabric, launch.host)) return *ended;
  set_environment(launch, *libraries, *names);
  std::vector<char*> words;
  for (const auto& word : launch.command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  ::execvp(launch.command.front().c_str(), words.data());
  return complain(subcommand, launch.command.front() + ": " + std::strerror(errno),
                  errno == ENOENT ? 127 : 126);
}

}  // namespace weir::command
