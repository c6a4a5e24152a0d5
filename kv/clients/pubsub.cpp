#include "kv/clients/pubsub.hpp"

#include "kv/clients/client.hpp"
#include "kv/text/glob.hpp"
#include "kv/text/spare_room.hpp"

namespace weir::kv {

namespace {
TextSet& own_topics(Client& client, PubSub::Kind kind) {
  switch (kind) {
    case PubSub::Kind::channel:
      return client.subscriptions.channels;
    case PubSub::Kind::pattern:
      return client.subscriptions.patterns;
    default:
      return client.subscriptions.shard_channels;
  }
}
}  // namespace

bool PubSub::subscribe(Client& client, Kind kind, std::string_view topic) {
  if (!own_topics(client, kind).emplace(topic).second) return false;
  client.subscriptions.text_bytes += topic.size();
  topics_[static_cast<std::size_t>(kind)][std::string(topic)].push_back(&client);
  return true;
}

void PubSub::drop_listener(Client& client, Kind kind, std::string_view topic) {
  Topics& topics = topics_[static_cast<std::size_t>(kind)];
  const auto it = topics.find(topic);
  std::erase(it->second, &client);
  if (!it->second.empty()) return;
  topics.erase(it);
  free_if_empty(topics);
  if (nobody_listens) nobody_listens(kind, topic);
}

bool PubSub::unsubscribe(Client& client, Kind kind, std::string_view topic) {
  auto& own = own_topics(client, kind);
  const auto mine = own.find(topic);
  if (mine == own.end()) return false;
  client.subscriptions.text_bytes -= topic.size();
  drop_listener(client, kind, topic);
  own.erase(mine);
  free_if_empty(own);
  return true;
}

TextSet PubSub::unsubscribe_all(Client& client, Kind kind) {
  TextSet topics = std::exchange(own_topics(client, kind), {});
  for (const std::string& topic : topics) {
    client.subscriptions.text_bytes -= topic.size();
    drop_listener(client, kind, topic);
  }
  return topics;
}

void PubSub::unsubscribe_all(Client& client) {
  for (Kind kind : {Kind::channel, Kind::pattern, Kind::shard}) unsubscribe_all(client, kind);
}

void PubSub::deliver(Client& client, std::string_view kind, std::string_view pattern,
                     std::string_view channel, std::string_view message) {
  Reply& reply = client.reply;
  const Reply::Pushing pushing(reply);
  reply.push(pattern.data() == nullptr ? 3 : 4);
  reply.bulk(kind);
  if (pattern.data() != nullptr) reply.bulk(pattern);
  reply.bulk(channel);
  reply.bulk(message);
  client.will_flush();
}

std::size_t PubSub::publish(std::string_view channel, std::string_view message) {
  std::size_t reached = 0;
  const Topics& channels = topics(Kind::channel);
  if (const auto it = channels.find(channel); it != channels.end()) {
    for (Client* client : it->second) deliver(*client, "message", {}, channel, message);
    reached += it->second.size();
  }
  for (const auto& [pattern, listeners] : topics(Kind::pattern)) {
    if (!glob_match(pattern, channel)) continue;
    for (Client* client : listeners) deliver(*client, "pmessage", pattern, channel, message);
    reached += listeners.size();
  }
  return reached;
}

void PubSub::deliver_to(Kind kind, std::string_view topic, std::string_view channel,
                        std::string_view message) {
  const auto it = topics(kind).find(topic);
  if (it == topics(kind).end()) return;
  for (Client* client : it->second) {
    if (kind == Kind::pattern) {
      deliver(*client, "pmessage", topic, channel, message);
    } else {
      deliver(*client, kind == Kind::shard ? "smessage" : "message", {}, channel, message);
    }
  }
}

std::size_t PubSub::publish_shard(std::string_view channel, std::string_view message) {
  const Topics& channels = topics(Kind::shard);
  const auto it = channels.find(channel);
  if (it == channels.end()) return 0;
  for (Client* client : it->second) deliver(*client, "smessage", {}, channel, message);
  return it->second.size();
}

}  // namespace weir::kv
