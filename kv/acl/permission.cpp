#include "kv/acl/permission.hpp"

#include <algorithm>

#include "kv/command/key_specs.hpp"

namespace weir::kv::acl {

namespace {

// Commands whose arguments are channels, from the first argument on.
struct ChannelRow {
  std::string_view command;
  bool all;      // every argument, or only the first
  bool pattern;  // the arguments are patterns
};
constexpr ChannelRow channel_rows[] = {
    {"subscribe", true, false}, {"ssubscribe", true, false}, {"psubscribe", true, true},
    {"publish", false, false},  {"spublish", false, false},
};

// The keys in a request; found on first use.
class Keys {
 public:
  Keys(const Command& command, Arguments arguments) : command_(command), arguments_(arguments) {}

  const std::vector<KeyInUse>& get() {
    if (!found_) found_ = keys_in(command_, arguments_).value_or(std::vector<KeyInUse>());
    return *found_;
  }
  std::size_t place(const KeyInUse& key) const {
    const auto argument = std::ranges::find_if(
        arguments_, [&](const Argument& one) { return one.text.data() == key.key.data(); });
    return static_cast<std::size_t>(argument - arguments_.begin()) % arguments_.size();
  }

 private:
  const Command& command_;
  Arguments arguments_;
  std::optional<std::vector<KeyInUse>> found_;
};

bool uses(const KeyInUse& key, std::string_view how) { return key.use.find(how) != std::string_view::npos; }

bool allows_key(const Selector& selector, const KeyInUse& key) {
  const bool writes = uses(key, "insert") || uses(key, "update") || uses(key, "delete");
  return selector.allows_key(key.key, uses(key, "access"), writes);
}

std::optional<Denial> denial_of_channels(const Selector& selector, const Command& command,
                                         Arguments arguments) {
  if (selector.every_channel() || command.group != "pubsub" || !command.container.empty())
    return std::nullopt;
  const auto* row = std::ranges::find(channel_rows, command.name, &ChannelRow::command);
  if (row == std::end(channel_rows)) return std::nullopt;
  const std::size_t end = row->all ? arguments.size() : std::min<std::size_t>(2, arguments.size());
  for (std::size_t i = 1; i < end; ++i) {
    const std::string_view name = arguments[i].text;
    if (!(row->pattern ? selector.allows_channel_pattern(name) : selector.allows_channel(name)))
      return Denial{Denied::channel, i};
  }
  return std::nullopt;
}

std::optional<Denial> denial_by(const Selector& selector, const Command& command, Arguments arguments,
                                Keys& keys) {
  if (!selector.allows(command, arguments)) return Denial{Denied::command};
  if (!selector.every_key()) {
    for (const KeyInUse& key : keys.get()) {
      if (!allows_key(selector, key)) return Denial{Denied::key, keys.place(key)};
    }
  }
  return denial_of_channels(selector, command, arguments);
}

}  // namespace

std::optional<Denial> find_denial(const User& user, const Command& command, Arguments arguments) {
  Keys keys(command, arguments);
  Denial closest{Denied::command};
  for (const Selector& selector : user.selectors()) {
    const auto denied = denial_by(selector, command, arguments, keys);
    if (!denied) return std::nullopt;
    if (denied->what > closest.what || (denied->what == closest.what && denied->argument > closest.argument))
      closest = *denied;
  }
  return closest;
}

bool may_read_every_key(const User& user, const Command& command, Arguments arguments) {
  Keys keys(command, arguments);
  return user.may_do_everything() || std::ranges::any_of(user.selectors(), [&](const Selector& selector) {
           return selector.reads_every_key() && !denial_by(selector, command, arguments, keys);
         });
}

}  // namespace weir::kv::acl
