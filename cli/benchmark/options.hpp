// weir-benchmark's command line as a value.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/benchmark/key_numbers.hpp"
#include "cli/client/server_options.hpp"

namespace weir::benchmark {

enum class Output { text, quiet, csv };

struct Options {
  client::ServerOptions server;
  std::vector<std::size_t> clients{50};  // more than one: compares at each of them
  std::uint64_t requests = 100'000;
  bool requests_given = false;
  std::optional<double> duration_s;
  std::vector<std::size_t> pipeline{1};  // likewise
  std::size_t threads = 1;
  std::size_t data_bytes = 3;
  std::uint64_t rate_per_s = 0;  // 0: a closed loop
  std::uint64_t keyspace = 0;
  KeyDistribution keys;
  bool keys_given = false;
  std::uint64_t seed = 12345;
  bool keep_alive = true;
  int precision = 3;  // decimal places of the latencies in ms
  std::vector<std::string> tests;
  std::string mix;                   // of tests; instead of running them one after another
  std::vector<std::string> command;  // a command given by the user
  bool last_argument_from_stdin = false;
  bool loop = false;  // -l: repeat the tests for ever
  bool cluster = false;
  bool idle = false;  // -I: no tests
  std::vector<int> pinned_cpus;
  Output output = Output::text;

  std::vector<client::Transport> compare;  // not empty: compare these transports
  std::size_t repeats = 3;
  std::optional<std::uint16_t> tls_port;  // the server's TLS port, for TCP and RDMA alike
  std::optional<std::uint16_t> rdma_port;
  std::optional<std::uint16_t> tls_rdma_port;
  std::string json_file;
  std::vector<std::string> chart_files;

  bool help = false;
  bool version = false;
};

client::Result<Options> parse_options(std::span<const std::string> arguments);
std::string help_text();

}  // namespace weir::benchmark
