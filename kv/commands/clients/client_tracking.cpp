#include "kv/commands/clients/client_tracking.hpp"

#include <optional>
#include <string>
#include <vector>

#include "kv/call/call.hpp"
#include "kv/clients/client.hpp"
#include "kv/clients/tracking.hpp"
#include "kv/command/command.hpp"
#include "kv/text/number.hpp"

namespace weir::kv {

namespace {

// The options as given; prefixes may still conflict with each other.
struct TrackingOptions {
  TrackingMode mode;
  std::vector<std::string_view> prefixes;
};

std::optional<TrackingOptions> parse_tracking(const Call& call) {
  TrackingOptions options;
  const auto refuse = [&call](std::string_view error) {
    call.reply.error(error);
    return std::nullopt;
  };
  for (std::size_t i = 3; i < call.count(); ++i) {
    const bool more = i + 1 < call.count();
    if (is_word(call[i], "REDIRECT") && more) {
      if (options.mode.redirect != 0)
        return refuse("ERR A client can only redirect to a single other client");
      std::int64_t id = 0;
      if (!call.integer(++i, id)) return std::nullopt;
      if (!call.server.clients.contains(static_cast<std::uint64_t>(id)))
        return refuse("ERR The client ID you want redirect to does not exist");
      options.mode.redirect = static_cast<std::uint64_t>(id);
    } else if (is_word(call[i], "BCAST")) {
      options.mode.broadcast = true;
    } else if (is_word(call[i], "OPTIN")) {
      options.mode.opt_in = true;
    } else if (is_word(call[i], "OPTOUT")) {
      options.mode.opt_out = true;
    } else if (is_word(call[i], "NOLOOP")) {
      options.mode.no_loop = true;
    } else if (is_word(call[i], "PREFIX") && more) {
      options.prefixes.push_back(call[++i]);
    } else {
      return refuse("ERR syntax error");
    }
  }
  return options;
}

// Why a client whose tracking is `now` (null: off) cannot change to `wanted`; empty: it can.
std::string_view conflict(const TrackingOptions& wanted, const TrackingMode* now) {
  const TrackingMode& mode = wanted.mode;
  if (!mode.broadcast && !wanted.prefixes.empty())
    return "ERR PREFIX option requires BCAST mode to be enabled";
  if (now != nullptr && now->broadcast != mode.broadcast)
    return "ERR You can't switch BCAST mode on/off before disabling tracking for this client, and then "
           "re-enabling it with a different mode.";
  if (mode.broadcast && (mode.opt_in || mode.opt_out))
    return "ERR OPTIN and OPTOUT are not compatible with BCAST";
  if (mode.opt_in && mode.opt_out) return "ERR You can't specify both OPTIN mode and OPTOUT mode";
  if (now != nullptr && ((mode.opt_in && now->opt_out) || (mode.opt_out && now->opt_in)))
    return "ERR You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, and then "
           "re-enabling it with a different mode.";
  return {};
}

bool overlap(std::string_view a, std::string_view b) { return a.starts_with(b) || b.starts_with(a); }

// A key must not be reported twice. Replies with an error if two prefixes overlap.
bool prefixes_are_apart(const Call& call, const std::vector<std::string_view>& prefixes) {
  const auto refuse = [&call](std::string_view prefix, std::string_view which, std::string_view other) {
    call.reply.error("ERR Prefix '" + std::string(prefix) + "' overlaps with " + std::string(which) +
                     " prefix '" + std::string(other) + "'. Prefixes for a single client must not overlap.");
    return false;
  };
  const TrackingMode* now = call.client.tracking.get();
  for (std::size_t i = 0; i < prefixes.size(); ++i) {
    if (now != nullptr) {
      for (const std::string& other : now->prefixes) {
        if (overlap(other, prefixes[i])) return refuse(prefixes[i], "an existing", other);
      }
    }
    for (std::size_t k = i + 1; k < prefixes.size(); ++k) {
      if (overlap(prefixes[i], prefixes[k])) return refuse(prefixes[i], "another provided", prefixes[k]);
    }
  }
  return true;
}

}  // namespace

void client_tracking(const Call& call) {
  auto options = parse_tracking(call);
  if (!options) return;
  if (is_word(call[2], "OFF")) {
    call.server.tracking.disable(call.client);
    return call.reply.ok();
  }
  if (!is_word(call[2], "ON")) return call.syntax_error();
  const std::string_view error = conflict(*options, call.client.tracking.get());
  if (!error.empty()) return call.reply.error(error);
  if (!prefixes_are_apart(call, options->prefixes)) return;
  if (options->mode.broadcast && options->prefixes.empty()) options->prefixes.emplace_back("");
  for (std::string_view prefix : options->prefixes) options->mode.prefixes.emplace(prefix);
  call.server.tracking.enable(call.client, options->mode);
  call.reply.ok();
}

void client_caching(const Call& call) {
  TrackingMode* mode = call.client.tracking.get();
  if (mode == nullptr)
    return call.reply.error(
        "ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode "
        "enabled");
  if (is_word(call[2], "YES")) {
    if (!mode->opt_in)
      return call.reply.error("ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.");
  } else if (is_word(call[2], "NO")) {
    if (!mode->opt_out)
      return call.reply.error("ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.");
  } else {
    return call.syntax_error();
  }
  mode->caching = true;
  call.reply.ok();
}

namespace {
std::int64_t redirection(const Client& client) {
  return client.tracking == nullptr ? -1 : static_cast<std::int64_t>(client.tracking->redirect);
}
}  // namespace

void client_getredir(const Call& call) { call.reply.integer(redirection(call.client)); }

void client_trackinginfo(const Call& call) {
  const TrackingMode* mode = call.client.tracking.get();
  std::vector<std::string_view> flags{mode == nullptr ? "off" : "on"};
  if (mode != nullptr) {
    if (mode->broadcast) flags.emplace_back("bcast");
    if (mode->opt_in) flags.emplace_back("optin");
    if (mode->opt_in && mode->caching) flags.emplace_back("caching-yes");
    if (mode->opt_out) flags.emplace_back("optout");
    if (mode->opt_out && mode->caching) flags.emplace_back("caching-no");
    if (mode->no_loop) flags.emplace_back("noloop");
    if (mode->broken) flags.emplace_back("broken_redirect");
  }
  call.reply.map(3);
  call.reply.bulk("flags");
  call.reply.set(flags.size());
  for (std::string_view flag : flags) call.reply.bulk(flag);
  call.reply.bulk("redirect");
  call.reply.integer(redirection(call.client));
  call.reply.bulk("prefixes");
  call.reply.array(mode == nullptr ? 0 : mode->prefixes.size());
  if (mode == nullptr) return;
  for (const std::string& prefix : mode->prefixes) call.reply.bulk(prefix);
}

}  // namespace weir::kv
