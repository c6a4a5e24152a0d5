// weir tensor: what a hub has, one of its arrays as a file, and how fast they come.
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <expected>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "cli/weir/command.hpp"
#include "cli/weir/npy.hpp"
#include "rdma/provider.hpp"
#include "screen/terminal.hpp"
#include "spelling/did_you_mean.hpp"
#include "tensor/address.hpp"
#include "tensor/peer.hpp"

namespace weir::command {
namespace {

constexpr std::string_view help = R"help(Usage: weir tensor ls [--json] ADDRESS
       weir tensor get [OPTION...] ADDRESS NAME
       weir tensor bench [OPTION...] ADDRESS NAME

Lists and fetches the named, versioned arrays of a hub (tensor/). ADDRESS is rdma://HOST:PORT, tcp://HOST:PORT,
tls://HOST:PORT, or rdma://HOST:PORT?fallback=tcp, which uses TCP if RDMA does not answer; HOST:PORT alone means RDMA.

  ls          list the arrays: name, version, bytes, dtype and shape
  get         fetch the newest version of an array as NAME.npy; of a tree as a folder of such files
  bench       fetch it repeatedly into the same memory: bytes a second, and how long a fetch takes

Options:
  --json              print JSON, for programs (ls, bench)
  -o, --output PATH   file or folder that get writes
  --timeout SECONDS   how long get waits for the array to be published (0: not at all)
  --done WORD         after get: tell a hub that lent the version that we are done with it, and this word
  --count N           how often bench fetches (100)
  --cacert FILE       tls://: certificate authority to trust (default: the system's)
  --cert FILE         tls://: own certificate
  --key FILE          tls://: its private key
  --server-name NAME  tls://: name that the hub's certificate must have (default: HOST)
  -h, --help          show this help

WEIR_TENSOR_TOKEN is the token of a hub that asks for one.

Examples:
  $ weir tensor ls rdma://10.0.0.1:7800
  $ weir tensor get rdma://10.0.0.1:7800 layer1.w -o w.npy
)help";

struct Request {
  std::string action, address, name, output;
  tensor::TlsSettings tls;
  std::optional<std::string> done;
  bool json = false;
  double timeout_s = 0;
  std::uint32_t count = 100;
};

template <class T>
bool parse_number(const std::string& text, T least, T most, T& number) {
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  return failed == std::errc() && end == text.data() + text.size() && number >= least && number <= most;
}

constexpr std::string_view actions[] = {"ls", "get", "bench"};

std::expected<Request, std::string> parse(std::span<const std::string> words) {
  Request request;
  std::vector<std::string> plain;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    const bool more = i + 1 < words.size();
    const std::pair<std::string_view, std::string*> files[] = {
        {"--cacert", &request.tls.authority},
        {"--cert", &request.tls.certificate},
        {"--key", &request.tls.key},
        {"--server-name", &request.tls.server_name},
    };
    const auto* const file = std::ranges::find(files, word, [](const auto& each) { return each.first; });
    if (file != std::end(files) && more) {
      *file->second = words[++i];
    } else if (word == "--json") {
      request.json = true;
    } else if ((word == "-o" || word == "--output") && more) {
      request.output = words[++i];
    } else if (word == "--done" && more) {
      request.done = words[++i];
    } else if (word == "--timeout" && more) {
      if (!parse_number(words[++i], 0.0, 1e6, request.timeout_s))
        return std::unexpected("--timeout takes seconds from 0 to 1000000");
    } else if (word == "--count" && more) {
      if (!parse_number(words[++i], 1U, 1'000'000'000U, request.count))
        return std::unexpected("--count takes a number from 1 on");
    } else if (word.starts_with('-')) {
      return std::unexpected(option_complaint(word, help));
    } else {
      plain.push_back(word);
    }
  }
  if (plain.empty()) return std::unexpected("ls, get or bench, and an address, are missing");
  request.action = plain[0];
  const bool ls = request.action == "ls";
  if (!ls && request.action != "get" && request.action != "bench")
    return std::unexpected("'" + request.action + "' is none of ls, get and bench" +
                           did_you_mean(request.action, actions));
  if (plain.size() != (ls ? 2U : 3U))
    return std::unexpected(request.action + (ls ? " takes an address" : " takes an address and a name"));
  request.address = plain[1].find("://") == std::string::npos ? "rdma://" + plain[1] : plain[1];
  if (!ls) request.name = plain[2];
  return request;
}

std::string said(const tensor::Error& error) {
  return std::string(tensor::name_of(error.code)) + ": " + error.what;
}

// Names are the hub's: as text for a terminal.
std::string printable(std::string text) {
  for (char& each : text)
    if (static_cast<unsigned char>(each) < ' ' || each == '\x7f') each = '?';
  return text;
}

int list(tensor::Peer& peer, const Request& request) {
  const auto entries = peer.list();
  if (!entries) return complain("tensor", said(entries.error()), 1);
  if (request.json) {
    nlohmann::ordered_json all = nlohmann::ordered_json::array();
    for (const tensor::CatalogueEntry& each : *entries)
      all.push_back(
          {{"name", each.name}, {"version", each.version}, {"bytes", each.bytes}, {"what", each.what}});
    std::printf("%s\n", all.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace).c_str());
    return 0;
  }
  std::size_t width = 4;
  for (const tensor::CatalogueEntry& each : *entries)
    width = std::max(width, std::min<std::size_t>(each.name.size(), 60));
  std::printf("%-*s %10s %14s  %s\n", static_cast<int>(width), "NAME", "VERSION", "BYTES", "WHAT");
  for (const tensor::CatalogueEntry& each : *entries)
    std::printf("%-*s %10llu %14llu  %s\n", static_cast<int>(width), printable(each.name).c_str(),
                static_cast<unsigned long long>(each.version), static_cast<unsigned long long>(each.bytes),
                printable(each.what).c_str());
  return 0;
}

// A name of the hub's as one of ours: no folder of it, nothing hidden.
std::string as_file_name(const std::string& name) {
  std::string file = printable(name);
  std::ranges::replace(file, '/', '_');
  if (file.empty() || file.front() == '.') file.insert(0, "_");
  return file.substr(0, 200);
}

bool write_npy(const std::filesystem::path& path, const tensor::TensorInfo& info,
               std::span<const std::byte> data) {
  std::ofstream file(path, std::ios::binary);
  const std::string header = npy_header(info.dtype, info.shape);
  const auto bytes = static_cast<std::streamsize>(*info.bytes());
  file.write(header.data(), static_cast<std::streamsize>(header.size()));
  file.write(reinterpret_cast<const char*>(data.data() + info.offset), bytes);
  return static_cast<bool>(file.flush());
}

int get(tensor::Peer& peer, const Request& request) {
  tensor::FetchOptions options;
  if (request.timeout_s > 0)
    options.timeout = std::chrono::duration_cast<std::chrono::nanoseconds>(
        std::chrono::duration<double>(request.timeout_s));
  const auto fetched = peer.fetch(request.name, std::move(options));
  if (!fetched) return complain("tensor", said(fetched.error()), 1);
  const auto& tensors = fetched->metadata->tensors;
  const bool tree = tensors.size() != 1 || !tensors[0].name.empty();
  const std::filesystem::path output =
      !request.output.empty() ? request.output : as_file_name(request.name) + (tree ? "" : ".npy");
  std::error_code failed;
  if (tree) std::filesystem::create_directories(output, failed);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    // Numbered: names that differ only in what files cannot have stay apart.
    const std::filesystem::path path =
        tree ? output / (std::to_string(i) + "_" + as_file_name(tensors[i].name) + ".npy") : output;
    if (failed || !write_npy(path, tensors[i], fetched->data))
      return complain("tensor", "cannot write '" + path.string() + "'", 1);
  }
  if (request.done)
    if (const auto done = peer.done(request.name, *fetched, *request.done); !done)
      return complain("tensor", said(done.error()), 1);
  std::printf("%s: version %llu, %zu bytes\n", output.c_str(),
              static_cast<unsigned long long>(fetched->version), fetched->data.size());
  return 0;
}

int bench(tensor::Peer& peer, const Request& request) {
  using Clock = std::chrono::steady_clock;
  const auto first = peer.fetch(request.name);
  if (!first) return complain("tensor", said(first.error()), 1);
  tensor::FetchOptions again;
  if (first->metadata->tensors.size() == 1)
    again.out =
        tensor::Out{first->metadata->tensors[0].dtype, first->metadata->tensors[0].shape, first->data};
  std::vector<double> took_us;
  std::uint64_t bytes = 0;
  const Clock::time_point begun = Clock::now();
  for (std::uint32_t i = 0; i < request.count; ++i) {
    const Clock::time_point before = Clock::now();
    const auto fetched = peer.fetch(request.name, again);
    if (!fetched) return complain("tensor", said(fetched.error()), 1);
    took_us.push_back(std::chrono::duration<double, std::micro>(Clock::now() - before).count());
    bytes += fetched->data.size();
  }
  const double seconds = std::chrono::duration<double>(Clock::now() - begun).count();
  std::ranges::sort(took_us);
  const auto percentile = [&](std::size_t percent) { return took_us[(took_us.size() - 1) * percent / 100]; };
  const double gigabytes = static_cast<double>(bytes) / 1e9 / seconds;
  const bool reads = peer.stats().read_bytes > 0;
  if (request.json) {
    const nlohmann::ordered_json result = {{"bytes", first->data.size()},       {"count", request.count},
                                           {"gigabytes_per_second", gigabytes}, {"least_us", took_us.front()},
                                           {"median_us", percentile(50)},       {"p99_us", percentile(99)},
                                           {"by", reads ? "read" : "write"}};
    std::printf("%s\n", result.dump(2).c_str());
  } else {
    std::printf(
        "%zu bytes, %u times: %.2f GB/s; a fetch took %.1f us at least, %.1f median, %.1f at the 99th "
        "percentile;"
        " %s\n",
        first->data.size(), request.count, gigabytes, took_us.front(), percentile(50), percentile(99),
        reads ? "read by this side" : "written by the hub");
  }
  return 0;
}

std::string variable(const char* name) { return std::getenv(name) != nullptr ? std::getenv(name) : ""; }

}  // namespace

int tensor(std::span<const std::string> arguments) {
  for (const std::string& word : arguments)
    if (word == "--help" || word == "-h") {
      screen::print_wrapped(stdout, help);
      return 0;
    }
  const auto request = parse(arguments);
  if (!request) return complain("tensor", request.error() + "; see weir tensor --help");
  rdma::ProviderOptions options;
  const auto choice = rdma::parse_provider_choice(variable("WEIR_RDMA_PROVIDER"));
  if (!choice) return complain("tensor", choice.error().what, 1);
  options.choice = *choice;
  options.library_path = variable("LD_LIBRARY_PATH");
  const auto provider = tensor::names_rdma(request->address)
                            ? rdma::load_provider(options)
                            : rdma::fail(rdma::Errc::no_device, "the address does not ask for RDMA");
  tensor::PeerSettings settings;
  settings.token = variable("WEIR_TENSOR_TOKEN");
  settings.tls = request->tls;
  const auto peer = tensor::Peer::connect(request->address, provider, settings);
  if (!peer)
    return complain("tensor", said(peer.error()), peer.error().code == tensor::Errc::bad_address ? 2 : 1);
  if (request->action == "ls") return list(**peer, *request);
  if (request->action == "get") return get(**peer, *request);
  return bench(**peer, *request);
}

}  // namespace weir::command
