// The subscriptions to channels, patterns and shard channels, and the sending of messages to them.
//
// Threading: the server's one thread.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "kv/text/text_hash.hpp"

namespace weir::kv {

class Client;

class PubSub {
 public:
  enum class Kind : std::uint8_t { channel, pattern, shard };
  // In order of subscription.
  using Listeners = std::vector<Client*>;
  using Topics = TextMap<Listeners>;

  // False: the client was already subscribed (or not subscribed).
  bool subscribe(Client& client, Kind kind, std::string_view topic);
  bool unsubscribe(Client& client, Kind kind, std::string_view topic);
  // Returns what it was subscribed to.
  TextSet unsubscribe_all(Client& client, Kind kind);
  void unsubscribe_all(Client& client);  // for a client that ends

  // Returns how many clients got the message.
  std::size_t publish(std::string_view channel, std::string_view message);
  std::size_t publish_shard(std::string_view channel, std::string_view message);
  // A message that another server has matched with a topic already: only the topic's listeners get it.
  void deliver_to(Kind kind, std::string_view topic, std::string_view channel, std::string_view message);

  // Called when the last listener of a topic has left; empty: nobody wants to know.
  std::function<void(Kind kind, std::string_view topic)> nobody_listens;

  const Topics& topics(Kind kind) const { return topics_[static_cast<std::size_t>(kind)]; }

 private:
  void drop_listener(Client& client, Kind kind, std::string_view topic);
  void deliver(Client& client, std::string_view kind, std::string_view pattern, std::string_view channel,
               std::string_view message);

  Topics topics_[3];
};

}  // namespace weir::kv
