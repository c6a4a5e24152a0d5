#include "nccl/settings.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

namespace weir::nccl {
namespace {

using rdma::Result;

constexpr std::size_t most_devices = 64;

constexpr std::array lines = {
    SettingLine{
        "WEIR_RDMA_PROVIDER", "auto|weir|system",
        "which RDMA to use: a NIC with an active port if there is one (auto), Weir's software NIC, or the "
        "system's rdma-core"},
    SettingLine{"WEIR_NCCL_DEVICES", "1..64", "number of devices that NCCL sees; they share the real NICs"},
    SettingLine{"WEIR_NCCL_SPEEDS", "MBPS,...",
                "speed of each device in Mbit/s; the last value applies to the rest"},
    SettingLine{"WEIR_NCCL_RAILS", "N,...", "rail of each device (interface version 12)"},
    SettingLine{"WEIR_NCCL_PLANES", "N,...", "plane of each device (interface version 12)"},
    SettingLine{"WEIR_NCCL_PCI_PATHS", "PATH,...",
                "PCI device of each device, a directory of /sys; empty: none"},
    SettingLine{"WEIR_NCCL_INTERFACES", "NAME,...",
                "network interfaces whose RDMA devices are used; all if not set"},
    SettingLine{
        "WEIR_NCCL_ACK_TIMEOUT_MS", "1..60000",
        "how long the device waits for an acknowledgement before it retransmits; 7 timeouts end a connection "
        "(500)"},
    SettingLine{"WEIR_NCCL_CONNECT_TIMEOUT_MS", "100..86400000",
                "how long connecting may take, the peer's accept included (300000)"},
    SettingLine{
        "WEIR_NCCL_FAULTS", "qp-error=P,rnr-storm=P[:US],delay=P[:US],dead-nic=DEV[@OPS],seed=N",
        "faults to inject: P is the probability for each operation, US microseconds, DEV a device that dies "
        "after OPS operations"},
    SettingLine{"WEIR_NCCL_HELP", "1", "prints these lines to NCCL's log"},
};

std::unexpected<rdma::Error> bad(std::string_view name, std::string_view value, std::string_view wanted) {
  return rdma::fail(rdma::Errc::bad_setting,
                    std::string(name) + "=\"" + std::string(value) + "\": expected " + std::string(wanted));
}

std::vector<std::string_view> split(std::string_view list) {
  std::vector<std::string_view> words;
  for (;;) {
    const std::size_t comma = list.find(',');
    words.push_back(list.substr(0, comma));
    if (comma == std::string_view::npos) return words;
    list.remove_prefix(comma + 1);
  }
}

template <class Number>
std::optional<Number> number(std::string_view text, Number least, Number most) {
  Number value{};
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed != std::errc() || end != text.data() + text.size() || !(value >= least && value <= most))
    return std::nullopt;
  return value;
}

// Parses "P" or "P:US".
bool parse_chance(std::string_view text, double& chance, std::chrono::microseconds& by) {
  const std::size_t colon = text.find(':');
  const auto p = number<double>(text.substr(0, colon), 0, 1);
  if (!p) return false;
  chance = *p;
  if (colon == std::string_view::npos) return true;
  const auto us = number<std::int64_t>(text.substr(colon + 1), 0, 60'000'000);
  if (us) by = std::chrono::microseconds(*us);
  return us.has_value();
}

// Parses "DEV" or "DEV@OPS".
bool parse_dead(std::string_view text, Faults& faults) {
  const std::size_t at = text.find('@');
  const auto device = number<int>(text.substr(0, at), 0, most_devices - 1);
  if (!device) return false;
  faults.dead_device = *device;
  if (at == std::string_view::npos) return true;
  const auto operations =
      number<std::uint64_t>(text.substr(at + 1), 0, std::numeric_limits<std::uint64_t>::max());
  faults.dead_after = operations.value_or(0);
  return operations.has_value();
}

bool parse_fault(std::string_view word, Faults& faults) {
  const std::size_t equals = word.find('=');
  if (equals == std::string_view::npos) return false;
  const std::string_view name = word.substr(0, equals), value = word.substr(equals + 1);
  std::chrono::microseconds none{};
  if (name == "qp-error") return parse_chance(value, faults.qp_error, none) && none.count() == 0;
  if (name == "rnr-storm") return parse_chance(value, faults.rnr_storm, faults.rnr_for);
  if (name == "delay") return parse_chance(value, faults.delay, faults.delay_by);
  if (name == "dead-nic") return parse_dead(value, faults);
  if (name != "seed") return false;
  const auto seed = number<std::uint64_t>(value, 0, std::numeric_limits<std::uint64_t>::max());
  faults.seed = seed.value_or(0);
  return seed.has_value();
}

// Reads variables and keeps the first complaint.
class Reader {
 public:
  explicit Reader(const Lookup& lookup) : lookup_(lookup) {}

  std::optional<std::string_view> value(const char* name) const {
    const char* text = lookup_(name);
    return text != nullptr && *text != '\0' ? std::optional<std::string_view>(text) : std::nullopt;
  }
  template <class Number>
  std::optional<Number> one(const char* name, Number least, Number most) {
    const auto text = value(name);
    if (!text) return std::nullopt;
    const auto parsed = number<Number>(*text, least, most);
    if (!parsed)
      complain(name, *text, "a number from " + std::to_string(least) + " to " + std::to_string(most));
    return parsed;
  }
  template <class Number>
  std::vector<Number> list(const char* name, Number least, Number most) {
    std::vector<Number> numbers;
    const auto text = value(name);
    if (!text) return numbers;
    for (const std::string_view word : split(*text)) {
      const auto parsed = number<Number>(word, least, most);
      if (!parsed) {
        complain(name, *text,
                 "numbers from " + std::to_string(least) + " to " + std::to_string(most) +
                     ", with commas between them");
        return {};
      }
      numbers.push_back(*parsed);
    }
    return numbers;
  }
  void complain(std::string_view name, std::string_view text, std::string_view wanted) {
    if (!error_) error_ = bad(name, text, wanted).error();
  }
  const std::optional<rdma::Error>& error() const { return error_; }

 private:
  const Lookup& lookup_;
  std::optional<rdma::Error> error_;
};

template <class Value>
const Value* nth_or_last(const std::vector<Value>& values, std::size_t index) {
  return values.empty() ? nullptr : &values[std::min(index, values.size() - 1)];
}

std::vector<DeviceShape> shapes(Reader& reader) {
  const auto count = reader.one<std::size_t>("WEIR_NCCL_DEVICES", 1, most_devices);
  const auto speeds = reader.list<int>("WEIR_NCCL_SPEEDS", 1, 100'000'000);
  const auto rails = reader.list<std::int16_t>("WEIR_NCCL_RAILS", -1, 32767);
  const auto planes = reader.list<std::int16_t>("WEIR_NCCL_PLANES", -1, 32767);
  std::vector<std::string_view> paths;
  if (const auto text = reader.value("WEIR_NCCL_PCI_PATHS")) paths = split(*text);
  const std::size_t longest = std::max({speeds.size(), rails.size(), planes.size(), paths.size()});
  std::vector<DeviceShape> devices(std::min(count.value_or(longest), most_devices));
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (const int* speed = nth_or_last(speeds, i)) devices[i].speed_mbps = *speed;
    if (const std::int16_t* rail = nth_or_last(rails, i)) devices[i].rail = *rail;
    if (const std::int16_t* plane = nth_or_last(planes, i)) devices[i].plane = *plane;
    if (i < paths.size()) devices[i].pci_path = paths[i];
  }
  return devices;
}

}  // namespace

std::span<const SettingLine> setting_lines() { return lines; }

std::string help_text() {
  std::string text;
  for (const SettingLine& line : lines) {
    text += text.empty() ? "" : "\n";
    text += std::string(line.name) + "=" + std::string(line.values) + ": " + std::string(line.meaning);
  }
  return text;
}

Result<Settings> read_settings(const Lookup& lookup) {
  Settings settings;
  Reader reader(lookup);
  settings.devices = shapes(reader);
  settings.interfaces = reader.value("WEIR_NCCL_INTERFACES").value_or("");
  if (const auto ms = reader.one<std::int64_t>("WEIR_NCCL_ACK_TIMEOUT_MS", 1, 60'000))
    settings.ack_timeout = std::chrono::milliseconds(*ms);
  if (const auto ms = reader.one<std::int64_t>("WEIR_NCCL_CONNECT_TIMEOUT_MS", 100, 86'400'000))
    settings.connect_timeout = std::chrono::milliseconds(*ms);
  if (const auto text = reader.value("WEIR_NCCL_FAULTS")) {
    settings.faults_text = *text;
    for (const std::string_view word : split(*text))
      if (!parse_fault(word, settings.faults))
        reader.complain(
            "WEIR_NCCL_FAULTS", *text,
            "qp-error=P, rnr-storm=P:US, delay=P:US, dead-nic=DEV@OPS, seed=N with commas between "
            "them, and P from 0 to 1");
  }
  settings.help = reader.value("WEIR_NCCL_HELP").has_value();
  if (reader.error()) return std::unexpected(*reader.error());
  return settings;
}

}  // namespace weir::nccl
