#include "kv/settings/config_file.hpp"

#include <strings.h>

#include <algorithm>
#include <array>
#include <optional>

#include "kv/acl/users.hpp"
#include "kv/resp/words.hpp"

namespace weir::kv {

namespace {

constexpr std::size_t most_config_levels = 16;

// A parameter of valkey-rdma.so.
struct Parameter {
  std::string_view name;
  std::string_view setting;
};
// As the module's pages of different versions name them.
constexpr std::array parameters{
    Parameter{"bind", "rdma-bind"},
    Parameter{"rdma-bind", "rdma-bind"},
    Parameter{"port", "rdma-port"},
    Parameter{"rdma-port", "rdma-port"},
    Parameter{"rx-size", "rdma-rx-size"},
    Parameter{"rdma-rx-size", "rdma-rx-size"},
    Parameter{"comp-vector", "rdma-completion-vector"},
    Parameter{"completion-vector", "rdma-completion-vector"},
    Parameter{"rdma-comp-vector", "rdma-completion-vector"},
    Parameter{"rdma-completion-vector", "rdma-completion-vector"},
};

std::string_view file_of(std::string_view path) { return path.substr(path.rfind('/') + 1); }

std::string_view trimmed(std::string_view line) {
  constexpr std::string_view blanks = " \t\r";
  const std::size_t begin = std::min(line.find_first_not_of(blanks), line.size());
  line.remove_prefix(begin);
  return line.substr(0, line.find_last_not_of(blanks) + 1);
}

class ConfigReading {
 public:
  // `wrong` collects the errors, and reading continues; null: it stops at the first.
  ConfigReading(Settings& settings, const ReadConfig& read, std::vector<ConfigError>* wrong)
      : settings_(settings), read_(read), wrong_(wrong) {}

  std::expected<void, ConfigError> apply(const ConfigText& config) {
    open_.push_back(config.file);
    std::string_view rest = config.text;
    for (std::size_t number = 1; !rest.empty(); ++number) {
      const std::size_t end = std::min(rest.find('\n'), rest.size());
      const std::string_view line = trimmed(rest.substr(0, end));
      rest.remove_prefix(std::min(end + 1, rest.size()));
      if (line.empty() || line[0] == '#') continue;
      inner_.reset();
      if (auto done = directive(line); !done) {
        if (inner_) return std::unexpected(*inner_);
        ConfigError error{config.file, number, std::string(line), done.error()};
        if (wrong_ == nullptr) return std::unexpected(std::move(error));
        wrong_->push_back(std::move(error));
      }
    }
    open_.pop_back();
    return {};
  }

 private:
  using Outcome = std::expected<void, std::string>;

  Outcome directive(std::string_view line) {
    const auto words = split_words(line);
    if (!words) return std::unexpected("Unbalanced quotes in configuration line");
    if (words->empty()) return {};
    if (words->size() == 2 && strcasecmp(words->front().c_str(), "include") == 0) return include((*words)[1]);
    if (strcasecmp(words->front().c_str(), "user") == 0)
      return add_user_line(settings_, std::span(*words).subspan(1));
    if (strcasecmp(words->front().c_str(), "rename-command") == 0)
      return std::unexpected(
          "commands keep their names here; ACL rules refuse them to users: user default -flushall");
    if (strcasecmp(words->front().c_str(), "loadmodule") == 0)
      return apply_module_line(settings_, std::span(*words).subspan(1));
    const SettingSpec* spec = find_setting(words->front());
    const bool may_be_empty = spec != nullptr && std::holds_alternative<WordsSetting>(spec->kind);
    if (spec == nullptr || (words->size() < 2 && !may_be_empty)) {
      return std::unexpected("Bad directive or wrong number of arguments");
    }
    return assign_setting(settings_, *spec, std::span(*words).subspan(1));
  }

  Outcome include(const std::string& path) {
    if (!read_) return std::unexpected("no file can be included here");
    if (open_.size() >= most_config_levels) {
      return std::unexpected("files include files more than " + std::to_string(most_config_levels) +
                             " levels deep");
    }
    auto files = read_(path);
    if (!files) return std::unexpected(files.error());
    for (const ConfigText& file : *files) {
      if (std::ranges::find(open_, file.file) != open_.end()) {
        return std::unexpected(file.file + " includes itself, here or through other files");
      }
      if (auto done = apply(file); !done) {
        inner_ = done.error();
        return std::unexpected(inner_->reason);
      }
    }
    return {};
  }

  Settings& settings_;
  const ReadConfig& read_;
  std::vector<ConfigError>* wrong_;
  std::vector<std::string> open_;     // the files being read, outermost first
  std::optional<ConfigError> inner_;  // an error in an included file
};

}  // namespace

std::expected<void, std::string> apply_module_line(Settings& settings, std::span<const std::string> words) {
  if (words.empty()) return std::unexpected("wrong number of arguments");
  const std::string_view module = file_of(words[0]);
  if (module != "valkey-rdma.so" && module != "redis-rdma.so")
    return std::unexpected("this server loads no modules; it has only RDMA (valkey-rdma.so) built in");
  for (const std::string& word : words.subspan(1)) {
    const std::size_t middle = word.find('=');
    const std::string_view name = std::string_view(word).substr(0, middle);
    const auto known = std::ranges::find(parameters, name, &Parameter::name);
    if (middle == std::string::npos || known == parameters.end())
      return std::unexpected(std::string(module) +
                             " takes bind=, port=, rx-size= and completion-vector=, not " + word);
    const std::array value{word.substr(middle + 1)};
    if (auto done = assign_setting(settings, *find_setting(known->setting), value); !done) return done;
  }
  return {};
}

std::expected<void, std::string> add_user_line(Settings& settings, std::span<const std::string> words) {
  std::string error = acl::user_line_error(words);
  const auto names_it = [&](const std::vector<std::string>& line) { return line[0] == words[0]; };
  if (error.empty() && std::ranges::any_of(settings.users, names_it))
    error = "Error in user declaration '" + words[0] +
            "': Duplicate user found. A user can only be defined once in config files";
  if (!error.empty()) return std::unexpected(error);
  settings.users.emplace_back(words.begin(), words.end());
  return {};
}

std::expected<void, ConfigError> apply_config(Settings& settings, const ConfigText& config,
                                              const ReadConfig& read) {
  return ConfigReading(settings, read, nullptr).apply(config);
}

std::vector<ConfigError> apply_right_lines(Settings& settings, const ConfigText& config,
                                           const ReadConfig& read) {
  std::vector<ConfigError> wrong;
  static_cast<void>(ConfigReading(settings, read, &wrong).apply(config));
  return wrong;
}

}  // namespace weir::kv
