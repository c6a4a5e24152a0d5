#include "cli/benchmark/options.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <limits>
#include <utility>

#include "cli/benchmark/workload.hpp"

namespace weir::benchmark {
namespace {

using client::ArgumentReader;
using client::ErrorKind;
using client::fail;
using client::number_into;
using client::Result;
using client::take_choice;
using client::take_switch;
using client::text_into;

std::vector<std::string> split_at_commas(std::string_view text) {
  std::vector<std::string> parts;
  for (std::size_t start = 0; start <= text.size();) {
    const auto comma = std::min(text.find(',', start), text.size());
    if (comma > start) parts.emplace_back(text.substr(start, comma - start));
    start = comma + 1;
  }
  return parts;
}

template <class Number>
Result<bool> numbers_into(ArgumentReader& arguments, Number least, Number most, std::vector<Number>& target) {
  const auto option = arguments.current();
  auto text = arguments.value();
  if (!text) return std::unexpected(std::move(text.error()));
  target.clear();
  for (const auto& part : split_at_commas(*text)) {
    Number number = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), number);
    if (error != std::errc{} || end != part.data() + part.size() || number < least || number > most) break;
    target.push_back(number);
  }
  if (target.size() != split_at_commas(*text).size() || target.empty())
    return fail(ErrorKind::usage, "option " + option + " wants a number from " + std::to_string(least) +
                                      " to " + std::to_string(most) + ", not '" + *text + "'");
  return true;
}

Result<bool> take_size(ArgumentReader& arguments, Options& options) {
  constexpr long long many = std::numeric_limits<long long>::max();
  if (arguments.is("-c")) return numbers_into<std::size_t>(arguments, 1, 1'000'000, options.clients);
  if (arguments.is("-n")) {
    options.requests_given = true;
    return number_into(arguments, 1, many, options.requests);
  }
  if (arguments.is("-d")) return number_into(arguments, 0, 512LL * 1024 * 1024, options.data_bytes);
  if (arguments.is("-P")) return numbers_into<std::size_t>(arguments, 1, 1'000'000, options.pipeline);
  if (arguments.is("-r")) return number_into(arguments, 1, many, options.keyspace);
  if (arguments.is("-k")) return number_into(arguments, 0, 1, options.keep_alive);
  if (arguments.is("--rate")) return number_into(arguments, 1, 1'000'000'000, options.rate_per_s);
  if (arguments.is("--dbnum")) return number_into(arguments, 0, 1'000'000, options.server.login.database);
  if (arguments.is("--threads")) return number_into(arguments, 1, 500, options.threads);
  if (arguments.is("--seed")) return number_into(arguments, 0, many, options.seed);
  if (arguments.is("--precision")) return number_into(arguments, 0, 6, options.precision);
  if (arguments.is("--repeat")) return number_into(arguments, 1, 1000, options.repeats);
  return false;
}

Result<bool> take_duration(ArgumentReader& arguments, Options& options) {
  const auto seconds = arguments.seconds(std::numeric_limits<double>::min(), 1e6);
  if (!seconds) return std::unexpected(seconds.error());
  options.duration_s = *seconds;
  return true;
}

Result<bool> take_keys(ArgumentReader& arguments, Options& options) {
  auto text = arguments.value();
  if (!text) return std::unexpected(std::move(text.error()));
  const auto distribution = key_distribution_named(*text);
  if (!distribution) return std::unexpected(distribution.error());
  options.keys = *distribution;
  options.keys_given = true;
  return true;
}

Result<bool> take_pin(ArgumentReader& arguments, Options& options) {
  auto text = arguments.value();
  if (!text) return std::unexpected(std::move(text.error()));
  for (const auto& part : split_at_commas(*text)) {
    int cpu = -1;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), cpu);
    if (error != std::errc{} || end != part.data() + part.size() || cpu < 0 || cpu > 1023)
      return fail(ErrorKind::usage,
                  "option --pin wants CPU numbers, as in --pin 1 or --pin 2,3, not '" + *text + "'");
    options.pinned_cpus.push_back(cpu);
  }
  return true;
}

Result<bool> take_compare(ArgumentReader& arguments, Options& options) {
  auto text = arguments.value();
  if (!text) return std::unexpected(std::move(text.error()));
  for (const auto& name : split_at_commas(*text)) {
    const auto transport = client::transport_named(name);
    if (!transport) return std::unexpected(transport.error());
    options.compare.push_back(*transport);
  }
  if (options.compare.empty())
    return fail(ErrorKind::usage,
                "option --compare wants transports, as in --compare tcp,unix,tls,rdma,rdma+tls");
  return true;
}

Result<bool> take_port(ArgumentReader& arguments, std::optional<std::uint16_t>& target) {
  std::uint16_t port = 0;
  auto taken = number_into(arguments, 1, 65535, port);
  if (taken) target = port;
  return taken;
}

Result<bool> take_comparison(ArgumentReader& arguments, Options& options) {
  if (arguments.is("--compare")) return take_compare(arguments, options);
  if (arguments.is("--tls-port")) return take_port(arguments, options.tls_port);
  if (arguments.is("--rdma-port")) return take_port(arguments, options.rdma_port);
  if (arguments.is("--rdma-tls-port") || arguments.is("--tls-rdma-port"))
    return take_port(arguments, options.tls_rdma_port);
  if (!arguments.is("--json") && !arguments.is("--chart")) return false;
  const bool chart = arguments.is("--chart");
  return text_into(arguments, chart ? options.chart_files.emplace_back() : options.json_file);
}

Result<bool> take_way(ArgumentReader& arguments, Options& options) {
  if (arguments.is("-t")) {
    auto text = arguments.value();
    if (!text) return std::unexpected(std::move(text.error()));
    options.tests = split_at_commas(*text);
    return true;
  }
  if (arguments.is("--mix")) return text_into(arguments, options.mix);
  if (arguments.is("--keys-distribution")) return take_keys(arguments, options);
  if (arguments.is("--duration")) return take_duration(arguments, options);
  if (arguments.is("--pin")) return take_pin(arguments, options);
  const std::pair<std::string_view, Output> outputs[] = {{"-q", Output::quiet}, {"--csv", Output::csv}};
  const std::pair<std::string_view, bool*> flags[] = {
      {"--help", &options.help},       {"-v", &options.version},
      {"--version", &options.version}, {"-x", &options.last_argument_from_stdin},
      {"-l", &options.loop},           {"-I", &options.idle},
      {"--cluster", &options.cluster}};
  return take_choice(arguments, outputs, options.output) || take_switch(arguments, flags);
}

// The available tests, in lines of at most 120 columns that align with the text of options.
std::string lines_of_tests() {
  constexpr std::size_t columns = 120, indent = 23;
  std::string text = "tests:";
  std::size_t used = indent + text.size();
  for (const auto& name : split_at_commas(names_of_standard_workloads())) {
    const auto word = (name.starts_with(' ') ? "" : " ") + name + ",";
    if (used + word.size() > columns) {
      text += "\n" + std::string(indent - 1, ' ');
      used = indent - 1;
    }
    text += word;
    used += word.size();
  }
  text.pop_back();
  return text;
}

Result<void> check_load(const Options& options) {
  if (options.rate_per_s && (!options.keep_alive || options.idle))
    return fail(ErrorKind::usage,
                "--rate keeps its connections and loads them: it goes neither with -k 0 nor with -I");
  if (!options.mix.empty() && (!options.tests.empty() || !options.command.empty()))
    return fail(ErrorKind::usage,
                "--mix names its tests: it goes neither with -t nor with a command of your own");
  if (options.keys_given && !options.keyspace)
    return fail(ErrorKind::usage,
                "--keys-distribution wants a keyspace to "
                "distribute over: say how large with -r");
  return {};
}

Result<void> check_cluster(const Options& options) {
  if (!options.cluster) return {};
  if (!options.compare.empty() || options.idle || !options.keep_alive)
    return fail(ErrorKind::usage,
                "--cluster loads the nodes of one cluster: it goes neither "
                "with --compare nor with -I nor -k 0");
  const bool tagged = std::ranges::any_of(
      options.command, [](const std::string& word) { return word.find(tag_mark) != std::string::npos; });
  if (!options.command.empty() && !tagged)
    return fail(ErrorKind::usage,
                "--cluster sends each request to the node that has its slot: "
                "write {tag} into the keys of your command, as "
                "in SET key:{tag}:__rand_int__ value");
  return {};
}

Result<void> check(const Options& options) {
  if (auto sound = check_cluster(options); !sound) return sound;
  if (auto sound = check_load(options); !sound) return sound;
  for (const auto& file : options.chart_files)
    if (!file.ends_with(".svg") && !file.ends_with(".png"))
      return fail(ErrorKind::usage, "--chart draws .svg and .png files, not " + file);
  if (options.compare.empty() && !options.chart_files.empty())
    return fail(ErrorKind::usage, "--chart draws a comparison: say which transports with --compare");
  if (options.compare.empty() && (options.clients.size() > 1 || options.pipeline.size() > 1))
    return fail(ErrorKind::usage, "-c and -P take more than one number only with --compare");
  if (options.loop && !options.json_file.empty())
    return fail(ErrorKind::usage, "-l has no end at which --json could be written; give one of them");
  if ((options.loop || options.idle) && !options.compare.empty())
    return fail(ErrorKind::usage, "--compare runs once: it goes neither with -l nor with -I");
  return {};
}

}  // namespace

Result<Options> parse_options(std::span<const std::string> arguments) {
  Options options;
  ArgumentReader reader(arguments);
  // The benchmark's own options take precedence: some are spelled like another program's.
  if (auto taken = client::take_options(reader, options, help_text, take_size, take_way, take_comparison);
      !taken)
    return std::unexpected(std::move(taken.error()));
  options.command.assign(reader.rest().begin(), reader.rest().end());
  if (auto sound = check(options); !sound) return std::unexpected(std::move(sound.error()));
  if (options.duration_s && !options.requests_given)
    options.requests = std::numeric_limits<std::uint64_t>::max() / 4;
  return options;
}

std::string help_text() {
  std::string text = R"(Usage: weir-benchmark [OPTIONS] [COMMAND ARG...]

Measures a Redis-protocol server over TCP, unix sockets, TLS, RDMA or TLS over RDMA.

  Each test at 50 connections, 100000 requests, over TCP:
    $ weir-benchmark
  GET and SET of 16 bytes over RDMA, one line each:
    $ weir-benchmark --rdma -t set,get -d 16 -q
  The transports against each other, in turn, with a chart:
    $ weir-benchmark --compare tcp,unix,tls,rdma,rdma+tls -s /tmp/weir.sock --tls-port 6380 --insecure \
        -t set,get -d 16 -c 1,50 --duration 1 --repeat 5 --chart compare.svg --json compare.json
  Latencies at 20000 requests a second, nine GETs to each SET, a few keys used most:
    $ weir-benchmark --rate 20000 --duration 10 --mix get:9,set:1 -r 100000 --keys-distribution zipf
  A command of your own, with random keys:
    $ weir-benchmark -r 100000 -n 1000000 -P 16 LPUSH list:__rand_int__ value

Load:
  -c <clients>         connections (default 50)
  -n <requests>        requests in all (default 100000)
  --duration <s>       stop after this many seconds (-n is then unlimited unless given)
  -P <requests>        pipeline: requests in flight on a connection (default 1)
  --rate <n>           open loop: n requests a second over all connections, each sent at its time whether the server
                       keeps up or not; latencies count from that time. If all connections are full a request waits;
                       when --duration is over it is given up, and counts with the time it waited
  --cluster            spread the connections over the primaries of the server's cluster; keys get hash tags of their
                       node's slots ({tag} in a COMMAND), and redirections (MOVED, ASK) are followed
  -d <bytes>           size of values (default 3)
  -r <keyspace>        random keys below this number; __rand_int__ in a COMMAND becomes 12 random digits
  --keys-distribution <uniform|zipf[:S]|sequential>
                       how the random keys are chosen (default uniform): zipf takes key k in proportion to
                       1/(k+1)^S (default 0.99)
  --seed <n>           seed of the random numbers (default 12345); the same seed gives the same keys
  -k <0|1>             0: a new connection for each batch (default 1: keep alive)
  --dbnum <db>         database
  --threads <n>        threads, each with its share of the connections (default 1)
  --pin <cpu,...>      run thread i on the i-th of these CPUs
  -t <test,...>        )" +
                     lines_of_tests() +
                     R"(
  --mix <test:n,...>   one load of several tests in these shares, as in get:9,set:1
  -l                   repeat the tests until Ctrl-C
  -I                   idle: only open the connections and hold them, until Ctrl-C
  -x                   read the last argument of COMMAND from standard input

Report:
  -q                   one line for each test
  --csv                redis-benchmark's columns, then p99.9
  --precision <n>      decimal places of latencies in ms (default 3)
  --json <file>        write everything as JSON, for programs; - is standard output

Comparison:
  --compare <list>     run each test over each of tcp, unix, tls, rdma, rdma+tls in turn
  --repeat <n>         rounds; the transports alternate within a round, the median is shown (default 3)
  --tls-port, --rdma-port, --rdma-tls-port <port>
                       the server's ports (default: from its CONFIG GET)
  -c, -P <n,n,...>     compare at each of these numbers of connections and requests in flight
  --chart <file>       draw the comparison as .svg or .png (needs gnuplot); may be given twice

)";
  text += client::server_options_help();
  text += R"(
  --help, --version

Exit status: 0; 1 the command line is invalid, the server cannot be reached or answers with an error, or something
cannot be written; 130 interrupted by Ctrl-C.
)";
  return text;
}

}  // namespace weir::benchmark
