#include "kv/clients/tracking.hpp"

#include <algorithm>
#include <utility>

#include "kv/clients/client.hpp"
#include "kv/command/key_specs.hpp"
#include "kv/core/server_common.hpp"
#include "kv/text/spare_room.hpp"

namespace weir::kv {

namespace {
constexpr std::string_view channel = "__redis__:invalidate";
}  // namespace

void Tracking::enable(Client& client, const TrackingMode& mode) {
  if (client.tracking == nullptr) {
    ++clients_;
    client.tracking = std::make_unique<TrackingMode>();
  }
  TrackingMode& now = *client.tracking;
  absl::btree_set<std::string> prefixes = std::move(now.prefixes);
  now = mode;
  now.prefixes = std::move(prefixes);
  for (const std::string& prefix : mode.prefixes) {
    if (!now.prefixes.insert(prefix).second) continue;
    Prefix& place = prefixes_[prefix];
    if (place.clients.empty()) ++lengths_[prefix.size()];
    place.clients.push_back(client.id());
  }
}

void Tracking::disable(Client& client) {
  if (client.tracking == nullptr) return;
  for (const std::string& prefix : client.tracking->prefixes) {
    const auto place = prefixes_.find(prefix);
    std::erase(place->second.clients, client.id());
    if (!place->second.clients.empty()) continue;
    prefixes_.erase(place);
    const auto length = lengths_.find(prefix.size());
    if (--length->second == 0) lengths_.erase(length);
  }
  client.tracking.reset();
  free_if_empty(prefixes_);
  if (--clients_ != 0) return;
  table_ = {};
  order_ = {};
  items_ = 0;
}

void Tracking::ran(Client& client, const Command& command, Arguments arguments) {
  // Of a script, the commands that read are told one by one: its other keys are none that the client caches.
  if (command.has(flag::readonly) && command.group != "scripting") remember(client, command, arguments);
}

void Tracking::remember(Client& client, const Command& command, Arguments arguments) {
  const TrackingMode& mode = *client.tracking;
  if (mode.broadcast) return;
  if ((mode.opt_in && !mode.caching) || (mode.opt_out && mode.caching)) return;
  const auto keys = keys_in(command, arguments);
  if (!keys) return;
  for (const KeyInUse& key : *keys) remember(client.id(), key.key);
}

void Tracking::remember(std::uint64_t client, std::string_view key) {
  auto known = table_.find(key);
  if (known == table_.end()) {
    known = table_.try_emplace(std::string(key)).first;
    known->second.place = order_.size();
    order_.push_back(&*known);
  }
  Readers& readers = known->second;
  if (std::ranges::binary_search(readers.ids, client)) return;
  if (readers.ids.size() == readers.ids.capacity()) drop_gone(readers);
  readers.ids.insert(std::ranges::lower_bound(readers.ids, client), client);
  ++items_;
  // Two at a time, so that a lowered limit is reached although every read adds a key.
  forget_some(2);
}

bool Tracking::too_full() const {
  const auto most = static_cast<std::size_t>(server_.settings.tracking_table_max_keys);
  return most != 0 && order_.size() > most;
}

void Tracking::forget_some(std::size_t most) {
  for (; most != 0 && too_full(); --most)
    forget_key(std::string(order_[server_.random() % order_.size()]->first));
}

// Removes clients that no longer track, before the list grows.
void Tracking::drop_gone(Readers& readers) {
  const auto end = std::remove_if(readers.ids.begin(), readers.ids.end(), [this](std::uint64_t id) {
    const Client* client = find(id);
    return client == nullptr || client->tracking == nullptr;
  });
  items_ -= static_cast<std::size_t>(readers.ids.end() - end);
  readers.ids.erase(end, readers.ids.end());
}

void Tracking::forget(Table::iterator key) {
  const std::size_t place = key->second.place;
  order_[place] = order_.back();
  order_[place]->second.place = place;
  order_.pop_back();
  items_ -= key->second.ids.size();
  table_.erase(key);
}

void Tracking::changed(std::string_view key) {
  const std::uint64_t by = server_.serving == nullptr ? 0 : server_.serving->id();
  for (const auto& [length, count] : lengths_) {
    if (length > key.size()) break;
    const auto prefix = prefixes_.find(key.substr(0, length));
    if (prefix == prefixes_.end()) continue;
    prefix->second.changed.insert_or_assign(std::string(key), by);
    broadcasts_ = true;
  }
  forget_key(key);
}

void Tracking::forget_key(std::string_view key) {
  const auto known = table_.find(key);
  if (known == table_.end()) return;
  const auto ids = known->second.ids;
  for (const std::uint64_t id : ids) {
    Client* client = find(id);
    if (client == nullptr || client->tracking == nullptr || client->tracking->broadcast) continue;
    if (client->tracking->no_loop && client == server_.serving) continue;
    send_or_hold(*client, key);
  }
  forget(known);
}

void Tracking::flushed() {
  for (const auto& [id, client] : server_.clients) {
    if (client->tracking != nullptr) send_or_hold(*client, std::nullopt);
  }
  table_ = {};
  order_ = {};
  items_ = 0;
}

void Tracking::command_over(Client& client) {
  // CLIENT CACHING applies to the next command, or to all commands of a transaction.
  if (client.tracking != nullptr && client.tracking->caching && !client.transaction.open &&
      (client.last_command == nullptr || client.last_command->container != "client"))
    client.tracking->caching = false;
  if (!pending_.empty() && !server_.script_suspended) send_pending();
}

void Tracking::send_pending() {
  for (const auto& [id, key] : std::exchange(pending_, {})) {
    Client* client = find(id);
    if (client == nullptr || client->tracking == nullptr) continue;
    tell(*client, key ? Keys({*key}) : Keys());
  }
}

void Tracking::end_round() {
  if (!pending_.empty() && !server_.script_suspended) send_pending();
  if (!std::exchange(broadcasts_, false)) return;
  // In order, so that the order of messages does not depend on a hash table.
  absl::btree_map<std::string_view, Prefix*> with_changes;
  for (auto& [prefix, state] : prefixes_) {
    if (!state.changed.empty()) with_changes.emplace(prefix, &state);
  }
  for (const auto& [prefix, state] : with_changes) {
    const auto changed = std::exchange(state->changed, {});
    for (const std::uint64_t id : state->clients) {
      Client& client = *find(id);
      std::vector<std::string_view> keys;
      for (const auto& [key, by] : changed) {
        if (!client.tracking->no_loop || by != id) keys.push_back(key);
      }
      if (!keys.empty()) tell(client, std::move(keys));
    }
  }
}

Client* Tracking::find(std::uint64_t id) const {
  const auto it = server_.clients.find(id);
  return it == server_.clients.end() ? nullptr : it->second.get();
}

// The client that is told in this client's place; null: the one it named has gone.
Client* Tracking::receiver(Client& client) {
  return client.tracking->redirect == 0 ? &client : find(client.tracking->redirect);
}

bool Tracking::is_being_answered(const Client& client) const {
  return &client == server_.serving || client.in_exec || client.script_runs;
}

void Tracking::send_or_hold(Client& client, std::optional<std::string_view> key) {
  Client* hears = receiver(client);
  if (is_being_answered(hears == nullptr ? client : *hears)) {
    pending_.emplace_back(client.id(), key);
  } else {
    tell(client, key ? Keys({*key}) : Keys());
  }
}

void Tracking::tell(Client& client, const Keys& keys) {
  Client* hears = receiver(client);
  if (hears == nullptr) {
    client.tracking->broken = true;
    if (!client.reply.resp3()) return;
    const Reply::Pushing pushing(client.reply);
    client.reply.push(2);
    client.reply.bulk("tracking-redir-broken");
    client.reply.integer(static_cast<std::int64_t>(client.tracking->redirect));
    return client.will_flush();
  }
  Reply& reply = hears->reply;
  const Reply::Pushing pushing(reply);
  if (reply.resp3()) {
    reply.push(2);
    reply.bulk("invalidate");
  } else if (hears != &client && hears->subscriptions.any()) {
    reply.push(3);
    reply.bulk("message");
    reply.bulk(channel);
  } else {
    return;  // RESP2 has no message for it
  }
  if (keys) {
    reply.array(keys->size());
    for (std::string_view key : *keys) reply.bulk(key);
  } else {
    reply.null();
  }
  hears->will_flush();
}

}  // namespace weir::kv
