#include "verbs/nic/fault_plan.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <utility>

#include "faults/language.hpp"

namespace weir::verbs {
namespace {

using Plans = link::Result<std::optional<faults::Plan>>;

constexpr std::size_t max_bytes = 1 << 20;

link::Result<std::string> text_of_file(const char* path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(max_bytes + 1, '\0');
  if (file) file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!file && !file.eof())
    return std::unexpected(
        link::Error{std::errc::no_such_file_or_directory,
                    std::string(faults_variable) + ": cannot read " + path + ": " + std::strerror(errno)});
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.size() > max_bytes)
    return std::unexpected(
        link::Error{std::errc::file_too_large, std::string(path) + " is longer than 1 MiB"});
  return text;
}

link::Result<faults::Plan> read(const std::string& text, const std::string& from) {
  auto plan = faults::read_plan(text);
  if (plan) return std::move(*plan);
  return std::unexpected(
      link::Error{std::errc::invalid_argument, from + ": " + faults::text_of(plan.error())});
}

Plans read_environment() {
  const char* const file = ::secure_getenv(faults_variable);
  const char* const lines = ::secure_getenv(fault_variable);
  std::optional<faults::Plan> plan;
  if (file != nullptr && *file != '\0') {
    const auto text = text_of_file(file);
    if (!text) return std::unexpected(text.error());
    auto from_file = read(*text, file);
    if (!from_file) return std::unexpected(from_file.error());
    plan = std::move(*from_file);
  }
  if (lines == nullptr || *lines == '\0') return plan;
  auto more = read(lines, fault_variable);
  if (!more) return std::unexpected(more.error());
  if (!plan) return std::move(*more);
  plan->faults.insert(plan->faults.end(), more->faults.begin(), more->faults.end());
  return plan;
}

Plans read_plan_of_this_program() {
  Plans plan = read_environment();
  if (!plan || !*plan) return plan;
  std::array<char, HOST_NAME_MAX + 1> host{};
  (void)::gethostname(host.data(), host.size() - 1);
  faults::keep_for(**plan, ::program_invocation_short_name, host.data());
  if ((*plan)->faults.empty()) plan->reset();
  return plan;
}

std::string text_of_variable(const char* name) {
  const char* const value = ::secure_getenv(name);
  return value != nullptr ? value : "";
}

}  // namespace

const Plans& fault_plan() {
  static const auto* const plan = new Plans(read_plan_of_this_program());  // never destroyed: needed at exit
  return *plan;
}

const FaultReports& fault_reports() {
  static const auto* const reports =
      new FaultReports{.json_file = text_of_variable(faults_json_variable),
                       .annotations = !text_of_variable(faults_annotations_variable).empty(),
                       .faults_file = text_of_variable(faults_variable)};  // never destroyed: needed at exit
  return *reports;
}

bool faults_want_packets() {
  const Plans& plan = fault_plan();
  return plan && *plan &&
         std::ranges::any_of((*plan)->faults, faults::is_about_packets,
                             [](const auto& fault) { return fault.act; });
}

}  // namespace weir::verbs
