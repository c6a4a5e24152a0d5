#include "cli/benchmark/chart.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "transport/owned_fd.hpp"

extern char** environ;

namespace weir::benchmark {
namespace {

using client::ErrorKind;
using client::fail;

// Colours that colour-blind readers can tell apart; RDMA gets the strong ones.
std::string_view colour_of(client::Transport transport) {
  switch (transport) {
    case client::Transport::tcp:
      return "#9aa5b1";
    case client::Transport::unix_socket:
      return "#c3a26b";
    case client::Transport::tls:
      return "#56707f";
    case client::Transport::rdma:
      return "#0072b2";
    case client::Transport::rdma_tls:
      return "#d55e00";
  }
  return "#000000";
}

std::string quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("''") : std::string(1, c);
  return out + "'";
}

// Escapes text for gnuplot's "...".
std::string in_double_quotes(std::string_view text) {
  std::string out;
  for (const char c : text) out += c == '"' || c == '\\' ? std::string{'\\', c} : std::string(1, c);
  return out;
}

std::string number(double value) {
  if (value >= 1e6) return fmt::format("{:.2f}M", value / 1e6);
  if (value >= 1e4) return fmt::format("{:.0f}k", value / 1e3);
  if (value >= 1e3) return fmt::format("{:.1f}k", value / 1e3);
  return value >= 100 ? fmt::format("{:.0f}", value) : fmt::format("{:.1f}", value);
}

// One row per case; its cells are a figure and its label for each transport.
template <class Figure>
std::string data_block(std::string_view name, const Comparison& comparison, Figure figure) {
  auto text = fmt::format("${} << END_OF_DATA\n", name);
  for (std::size_t i = 0; i < comparison.cases.size(); ++i) {
    text += std::to_string(i);
    for (const auto& row : comparison.cases[i].rows)
      text += fmt::format(" {:.3f} \"{}\"", figure(row), number(figure(row)));
    text += '\n';
  }
  return text + "END_OF_DATA\n";
}

std::string case_labels(const Comparison& comparison) {
  std::string labels;
  for (std::size_t i = 0; i < comparison.cases.size(); ++i) {
    const auto& measured = comparison.cases[i];
    auto label = fmt::format("{}\\n{} connection{}", measured.test, measured.clients,
                             measured.clients == 1 ? "" : "s");
    if (measured.pipeline > 1) label += fmt::format("\\npipeline {}", measured.pipeline);
    labels += fmt::format("{}\"{}\" {}", i ? ", " : "", label, i);
  }
  return labels;
}

// The bars of a case are side by side; each shows its figure.
std::string bars(std::string_view block, const Comparison& comparison) {
  const auto& rows = comparison.cases.front().rows;
  const double width = 0.84 / static_cast<double>(rows.size());
  std::string text = "plot ";
  for (std::size_t k = 0; k < rows.size(); ++k) {
    const auto shift = (static_cast<double>(k) - (static_cast<double>(rows.size()) - 1) / 2) * width;
    const auto column = 2 + 2 * k;
    text += fmt::format("{}${} using ($1+{:.4f}):{}:({:.4f}) with boxes fc rgb '{}' title {}",
                        k ? ", \\\n  " : "", block, shift, column, width * 0.92, colour_of(rows[k].transport),
                        quoted(name_of(rows[k].transport)));
    text += fmt::format(
        ", \\\n  ${} using ($1+{:.4f}):{}:{} with labels offset 0,0.6 font ',9' tc rgb '#333333' notitle",
        block, shift, column, column + 1);
  }
  return text + "\n";
}

}  // namespace

std::string chart_script(const Comparison& comparison, const std::string& file) {
  const auto& at = comparison.surroundings;
  const int width = std::max(
      720, static_cast<int>(140 + comparison.cases.size() * comparison.cases.front().rows.size() * 52));
  std::string text =
      file.ends_with(".png")
          ? fmt::format("set terminal pngcairo size {},760 font 'Sans,10' background rgb 'white'\n", width)
          : fmt::format("set terminal svg size {},760 font 'Sans,11' background rgb 'white' rounded\n",
                        width);
  text += fmt::format("set output {}\n", quoted(file));
  text += data_block("throughput", comparison, [](const Measured& row) { return row.ops_per_s; });
  text += data_block("latency", comparison, [](const Measured& row) { return row.p50_us; });
  text += fmt::format(
      "set multiplot layout 2,1 title \"{} byte values, median of {} round{}\\n{{/*0.8 {} x {}; client on "
      "CPU "
      "{}, server on "
      "CPU {}}}\"\n",
      comparison.data_bytes, comparison.repeats, comparison.repeats == 1 ? "" : "s", at.cpus,
      in_double_quotes(at.cpu_model), at.client_cpus, at.server_cpus.empty() ? "?" : at.server_cpus);
  text +=
      "set style fill solid noborder\nset border 3 lc rgb '#888888'\nset tics nomirror textcolor rgb "
      "'#333333'\n"
      "set grid ytics lc rgb '#e4e4e4' lt 1\nset logscale y 10\nset format y '%.0s%c'\n"
      "set key outside top right horizontal samplen 1\nset lmargin 11\nset bmargin 3.5\n";
  text += fmt::format("set xtics ({}) scale 0\nset xrange [-0.6:{}.6]\n", case_labels(comparison),
                      comparison.cases.size() - 1);
  double least_ops = 1e18, most_ops = 1, least_us = 1e18, most_us = 0.001;
  for (const auto& measured : comparison.cases)
    for (const auto& row : measured.rows) {
      least_ops = std::min(least_ops, row.ops_per_s);
      most_ops = std::max(most_ops, row.ops_per_s);
      least_us = std::min(least_us, row.p50_us);
      most_us = std::max(most_us, row.p50_us);
    }
  text += fmt::format("set ylabel 'operations a second (logarithmic)'\nset yrange [{:.3g}:{:.3g}]\n",
                      least_ops / 3, most_ops * 2);
  text += bars("throughput", comparison);
  text += fmt::format(
      "set ylabel 'median latency, microseconds (logarithmic)'\nset format y '%g'\nset yrange "
      "[{:.3g}:{:.3g}]\nset key "
      "off\n",
      std::max(least_us, 0.01) / 3, most_us * 2);
  text += bars("latency", comparison);
  return text + "unset multiplot\n";
}

client::Result<void> can_draw_into(const std::string& file) {
  const auto slash = file.rfind('/');
  const bool there = ::access(file.c_str(), F_OK) == 0;
  const auto written = there ? file : slash == std::string::npos ? "." : file.substr(0, slash + 1);
  if (::access(written.c_str(), W_OK) == 0) return {};
  return fail(ErrorKind::usage, "cannot write " + file + ": " + std::strerror(errno));
}

client::Result<void> draw_chart(const Comparison& comparison, const std::string& file) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return fail(ErrorKind::unsupported, "no pipe to gnuplot");
  OwnedFd reader(ends[0]);
  OwnedFd writer(ends[1]);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, reader.get(), STDIN_FILENO);
  // If gnuplot cannot open its output, it draws to standard output.
  ::posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
  std::string program = "gnuplot";
  char* const arguments[] = {program.data(), nullptr};
  pid_t child = 0;
  const int error = ::posix_spawnp(&child, program.c_str(), &actions, nullptr, arguments, environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (error)
    return fail(ErrorKind::unsupported,
                "gnuplot, which draws the chart, does not start; on Debian: apt-get install gnuplot-nox");
  reader.close();
  ::signal(SIGPIPE, SIG_IGN);  // if gnuplot dies early, its exit status shows it
  const auto script = chart_script(comparison, file);
  for (std::string_view rest = script; !rest.empty();) {
    const auto written = ::write(writer.get(), rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) break;
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
  writer.close();
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (status != 0)
    return fail(ErrorKind::unsupported, "gnuplot could not draw " + file + "; its words are above");
  return {};
}

}  // namespace weir::benchmark
