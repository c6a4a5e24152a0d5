#include "verbs/check/findings.hpp"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <map>
#include <mutex>
#include <utility>

#include "verbs/check/check_settings.hpp"
#include "verbs/check/suppressions.hpp"

// For a breakpoint: called at each finding, before it is printed.
extern "C" __attribute__((noinline)) void weir_check_report() { asm volatile(""); }

namespace weir::check {
namespace {

constexpr unsigned long max_printed = 200;  // of one process; the summary counts what came after

struct State {
  std::mutex mutex;
  Findings findings;
  std::map<std::pair<Rule, std::string>, unsigned long> seen;
  Suppressions suppressions = suppressions_of(settings().suppressions);
};
State& state() {
  static auto* const one = new State;
  return *one;
}

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", c);
      out += escape;
    } else {
      out += c;
    }
  }
  return out + "\"";
}

// Breaks at spaces, behind a label of 14 columns.
void append_paragraph(std::string& out, std::string_view label, std::string_view text) {
  constexpr std::size_t label_columns = 14, columns = 116;
  std::string line = "  " + std::string(label);
  line.resize(std::max(line.size() + 1, label_columns), ' ');
  const std::string indent(label_columns, ' ');
  bool fresh = true;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(word.size() + 1, text.size()));
    if (!fresh && line.size() + 1 + word.size() > columns) {
      out += line + "\n";
      line = indent;
      fresh = true;
    }
    if (!fresh) line += ' ';
    line += word;
    fresh = false;
  }
  out += line + "\n";
}

void append_frames(std::string& out, std::string_view label, const std::vector<Frame>& frames) {
  for (const Frame& frame : frames) {
    std::string line = "  " + std::string(label);
    line.resize(std::max<std::size_t>(line.size() + 1, 14), ' ');
    line += frame.function;
    line.resize(std::max<std::size_t>(line.size() + 1, 38), ' ');
    out += line + frame.where + "\n";
    label = "";
  }
}

void append_to_file(const std::string& path, const std::string& line) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (fd < 0) return;
  [[maybe_unused]] const ssize_t written = ::write(fd, line.data(), line.size());
  ::close(fd);
}

}  // namespace

void print(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
    if (written <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

void Report::print() const {
  const RuleText& rule = text_of(rule_);
  State& all = state();
  const std::lock_guard lock(all.mutex);
  const auto at = frames_of(*lines_.front().at);
  const std::string place = at.empty() ? std::string() : at.front().where + " " + at.front().function;
  if (all.seen[{rule_, place}]++ != 0) {
    ++all.findings.repeated;
    return;
  }
  std::vector<std::vector<Frame>> places;
  for (const Line& line : lines_) {
    places.push_back(line.at ? frames_of(*line.at) : std::vector<Frame>{});
    if (!all.suppressions.cover(rule.name, places.back())) continue;
    ++all.findings.suppressed;
    return;
  }
  auto& count = rule.severity == Severity::error  ? all.findings.errors
                : rule.severity == Severity::risk ? all.findings.risks
                                                  : all.findings.notes;
  ++count;
  weir_check_report();
  if (all.findings.errors + all.findings.risks + all.findings.notes <= max_printed) {
    const auto& first = places.front();
    check::print(text(places, first.empty() ? "*" : first.front().function));
  }
  if (!settings().json.empty()) append_to_file(settings().json, json(places));
  if (settings().stop && rule.severity == Severity::error) ::raise(SIGTRAP);
}

std::string Report::text(const std::vector<std::vector<Frame>>& places, std::string_view suppression) const {
  const RuleText& rule = text_of(rule_);
  std::string out = "==" + std::to_string(::getpid()) + "==" + std::string(name_of(rule.severity)) +
                    ": weir: " + std::string(rule.name) + ": " + what_ + "\n";
  for (std::size_t i = 0; i < lines_.size(); ++i) {
    if (lines_[i].at)
      append_frames(out, lines_[i].label, places[i]);
    else
      append_paragraph(out, lines_[i].label, lines_[i].text);
  }
  append_paragraph(out, "Why:", rule.why);
  append_paragraph(out, "Repair:", rule.repair);
  append_paragraph(out, "Suppress:", std::string(rule.name) + ":" + std::string(suppression));
  out += "SUMMARY: weir: " + std::string(rule.name);
  if (!places.front().empty())
    out += " " + places.front().front().where + " in " + places.front().front().function;
  return out + "\n";
}

std::string Report::json(const std::vector<std::vector<Frame>>& places) const {
  const RuleText& rule = text_of(rule_);
  std::string severity;
  for (const char c : name_of(rule.severity)) severity += static_cast<char>(c | 0x20);
  std::string out = "{\"rule\":" + quoted(rule.name) + ",\"severity\":" + quoted(severity) +
                    ",\"pid\":" + std::to_string(::getpid()) + ",\"what\":" + quoted(what_) + ",\"facts\":[";
  const char* separator = "";
  for (std::size_t i = 0; i < lines_.size(); ++i) {
    out += separator + std::string("{\"label\":") + quoted(lines_[i].label);
    separator = ",";
    if (!lines_[i].at) {
      out += ",\"text\":" + quoted(lines_[i].text) + "}";
      continue;
    }
    out += ",\"frames\":[";
    for (std::size_t f = 0; f < places[i].size(); ++f)
      out += std::string(f != 0 ? "," : "") + "{\"function\":" + quoted(places[i][f].function) +
             ",\"where\":" + quoted(places[i][f].where) + "}";
    out += "]}";
  }
  return out + "],\"why\":" + quoted(rule.why) + ",\"repair\":" + quoted(rule.repair) + "}\n";
}

Findings findings() {
  State& all = state();
  const std::lock_guard lock(all.mutex);
  return all.findings;
}

void forget_findings() {
  State& all = state();
  const std::lock_guard lock(all.mutex);
  all.findings = {};
  all.seen.clear();
}

}  // namespace weir::check
