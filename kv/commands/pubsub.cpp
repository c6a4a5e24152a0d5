// Publish and subscribe.
#include "kv/clients/pubsub.hpp"

#include <string>

#include "kv/call/call.hpp"
#include "kv/clients/client.hpp"
#include "kv/command/command.hpp"
#include "kv/commands/help.hpp"
#include "kv/replication/replication.hpp"
#include "kv/text/glob.hpp"

namespace weir::kv {

namespace {

using Kind = PubSub::Kind;

// Shard channels are counted separately.
std::size_t subscribed(const Client& client, Kind kind) {
  return kind == Kind::shard ? client.subscriptions.shard_channels.size() : client.subscriptions.count();
}

// `left` is the number of subscriptions whose end is still to be confirmed.
void confirm(const Call& call, std::string_view what, std::string_view topic, Kind kind,
             std::size_t left = 0) {
  const Reply::Pushing pushing(call.reply);
  call.reply.push(3);
  call.reply.bulk(what);
  topic.data() == nullptr ? call.reply.null() : call.reply.bulk(topic);
  call.reply.integer(static_cast<std::int64_t>(subscribed(call.client, kind) + left));
}

void subscribe_to(const Call& call, Kind kind, std::string_view what) {
  for (std::size_t i = 1; i < call.count(); ++i) {
    call.server.pubsub.subscribe(call.client, kind, call[i]);
    confirm(call, what, call[i], kind);
  }
}

void unsubscribe_from(const Call& call, Kind kind, std::string_view what) {
  if (call.count() > 1) {
    for (std::size_t i = 1; i < call.count(); ++i) {
      call.server.pubsub.unsubscribe(call.client, kind, call[i]);
      confirm(call, what, call[i], kind);
    }
    return;
  }
  const TextSet ended = call.server.pubsub.unsubscribe_all(call.client, kind);
  if (ended.empty()) return confirm(call, what, {}, kind);
  std::size_t left = ended.size();
  for (const std::string& topic : ended) confirm(call, what, topic, kind, --left);
}

void subscribe(const Call& call) { subscribe_to(call, Kind::channel, "subscribe"); }
void psubscribe(const Call& call) { subscribe_to(call, Kind::pattern, "psubscribe"); }
void ssubscribe(const Call& call) {
  if (call.client.in_exec)  // Redis refuses only this one of the three
    return call.reply.error("ERR SSUBSCRIBE isn't allowed for a DENY BLOCKING client");
  subscribe_to(call, Kind::shard, "ssubscribe");
}
void unsubscribe(const Call& call) { unsubscribe_from(call, Kind::channel, "unsubscribe"); }
void punsubscribe(const Call& call) { unsubscribe_from(call, Kind::pattern, "punsubscribe"); }
void sunsubscribe(const Call& call) { unsubscribe_from(call, Kind::shard, "sunsubscribe"); }

void publish(const Call& call) {
  call.server.replication->published(call.db.index(), call.arguments);
  call.reply.integer(static_cast<std::int64_t>(call.server.pubsub.publish(call[1], call[2])));
}
void spublish(const Call& call) {
  call.server.replication->published(call.db.index(), call.arguments);
  call.reply.integer(static_cast<std::int64_t>(call.server.pubsub.publish_shard(call[1], call[2])));
}

void list_topics(const Call& call, Kind kind) {
  if (call.count() > 3) return call.subcommand_error();
  std::vector<std::string_view> found;
  for (const auto& [topic, listeners] : call.server.pubsub.topics(kind)) {
    if (call.count() == 2 || glob_match(call[2], topic)) found.push_back(topic);
  }
  call.reply.array(found.size());
  for (std::string_view topic : found) call.reply.bulk(topic);
}
void count_listeners(const Call& call, Kind kind) {
  call.reply.array((call.count() - 2) * 2);
  const PubSub::Topics& topics = call.server.pubsub.topics(kind);
  for (std::size_t i = 2; i < call.count(); ++i) {
    const auto it = topics.find(call[i]);
    call.reply.bulk(call[i]);
    call.reply.integer(it == topics.end() ? 0 : static_cast<std::int64_t>(it->second.size()));
  }
}

void channels(const Call& call) { list_topics(call, Kind::channel); }
void shardchannels(const Call& call) { list_topics(call, Kind::shard); }
void numsub(const Call& call) { count_listeners(call, Kind::channel); }
void shardnumsub(const Call& call) { count_listeners(call, Kind::shard); }
void numpat(const Call& call) {
  call.reply.integer(static_cast<std::int64_t>(call.server.pubsub.topics(Kind::pattern).size()));
}
void pubsub_help(const Call& call) {
  reply_help(call,
             {
                 "CHANNELS [<pattern>]",
                 "    Return the currently active channels matching a <pattern> (default: '*').",
                 "NUMPAT",
                 "    Return number of subscriptions to patterns.",
                 "NUMSUB [<channel> ...]",
                 "    Return the number of subscribers for the specified channels, excluding",
                 "    pattern subscriptions(default: no channels).",
                 "SHARDCHANNELS [<pattern>]",
                 "    Return the currently active shard level channels matching a <pattern> (default: '*').",
                 "SHARDNUMSUB [<shardchannel> ...]",
                 "    Return the number of subscribers for the specified shard level channel(s)",
             });
}

}  // namespace

std::span<const Command> pubsub_commands() {
  using namespace flag;
  constexpr std::uint32_t common = flag::pubsub | noscript | loading | stale;
  constexpr std::uint32_t look = flag::pubsub | loading | stale;
  static constexpr Command subcommands[] = {
      {"channels",
       -2,
       look,
       0,
       0,
       0,
       channels,
       "pubsub",
       "Lists channels somebody listens to.",
       {},
       "pubsub"},
      {"numpat", 2, look, 0, 0, 0, numpat, "pubsub", "Counts patterns.", {}, "pubsub"},
      {"numsub", -2, look, 0, 0, 0, numsub, "pubsub", "Counts listeners of channels.", {}, "pubsub"},
      {"shardchannels", -2, look, 0, 0, 0, shardchannels, "pubsub", "Lists shard channels.", {}, "pubsub"},
      {"shardnumsub",
       -2,
       look,
       0,
       0,
       0,
       shardnumsub,
       "pubsub",
       "Counts listeners of shard channels.",
       {},
       "pubsub"},
      {"help", 2, loading | stale, 0, 0, 0, pubsub_help, "pubsub", "Explains PUBSUB.", {}, "pubsub"},
  };
  static constexpr Command commands[] = {
      {"subscribe", -2, common, 0, 0, 0, subscribe, "pubsub", "Listens to channels."},
      {"unsubscribe", -1, common, 0, 0, 0, unsubscribe, "pubsub", "Stops listening to channels."},
      {"psubscribe", -2, common, 0, 0, 0, psubscribe, "pubsub", "Listens to channels that match patterns."},
      {"punsubscribe", -1, common, 0, 0, 0, punsubscribe, "pubsub", "Stops listening to patterns."},
      {"ssubscribe", -2, common, 1, -1, 1, ssubscribe, "pubsub", "Listens to shard channels."},
      {"sunsubscribe", -1, common, 1, -1, 1, sunsubscribe, "pubsub", "Stops listening to shard channels."},
      {"publish", 3, look | fast | may_replicate, 0, 0, 0, publish, "pubsub",
       "Sends a message to a channel."},
      {"spublish", 3, look | fast | may_replicate, 1, 1, 1, spublish, "pubsub",
       "Sends a message to a shard channel."},
      {"pubsub", -2, 0, 0, 0, 0, nullptr, "pubsub", "Looks at who listens to what.", subcommands},
  };
  return commands;
}

}  // namespace weir::kv
