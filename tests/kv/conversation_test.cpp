// Several clients at once: each gets the same replies from Debian's redis-server and from this server.
//
// A line of conversations/*.txt is a client's name and a command in redis-cli's quoting; a client connects
// when it is first named. $a stands for the number of client a. Other forms:
//   a! COMMAND   the command blocks: its reply comes later
//   ? a          everything that a has received meanwhile
//   a +          a connects again; a speaks RESP3 from the start if its name is a capital letter
#include <gtest/gtest.h>

#include <cctype>
#include <fstream>
#include <map>

#include "kv/resp/words.hpp"
#include "tests/kv/redis_server.hpp"
#include "tests/kv/running_server.hpp"

namespace weir::kv::testing {
namespace {

class Conversation {
 public:
  explicit Conversation(std::string path)
      : path_(std::move(path)), observer_(WireClient::unix_socket(path_)) {
    // So that no client has an id that may also be a reply.
    for (int i = 0; i < 1000; ++i) WireClient::unix_socket(path_);
  }

  // What is received because of this line.
  std::string say(const std::vector<std::string>& words) {
    if (words[0] == "?") return without_numbers(hear_all(words[1]));
    const bool waits = words[0].ends_with('!');
    const std::string name = words[0].substr(0, words[0].size() - (waits ? 1 : 0));
    if (words[1] == "+" && clients_.contains(name)) {
      former_.emplace_back(name, clients_.at(name).number);
      clients_.erase(name);
    }
    WireClient& client = this->client(name);
    if (words[1] == "+") return "";
    std::vector<std::string> command;
    for (const std::string& word : std::span(words).subspan(1)) command.push_back(with_number(word));
    const std::string blocked = waits ? blocked_clients() : "";
    try {
      client.send(encode(command));
      if (!waits) return without_numbers(client.reply());
      while (blocked_clients() == blocked) {
      }
      return "";
    } catch (const std::exception&) {
      return "closed";
    }
  }

 private:
  struct Speaker {
    WireClient wire;
    std::string number;
  };

  WireClient& client(const std::string& name) {
    auto known = clients_.find(name);
    if (known == clients_.end()) {
      WireClient wire = WireClient::unix_socket(path_);
      if (std::isupper(static_cast<unsigned char>(name[0])) != 0) wire.call({"HELLO", "3"});
      const std::string number = wire.call({"CLIENT", "ID"});
      known = clients_.try_emplace(name, std::move(wire), number.substr(1, number.size() - 3)).first;
    }
    return known->second.wire;
  }

  // PONG arrives behind everything else.
  std::string hear_all(const std::string& name) {
    WireClient& client = this->client(name);
    std::string heard;
    try {
      client.send(encode({"PING", "that was all"}));
      for (;;) {
        const std::string reply = client.reply();
        if (reply.find("that was all") != std::string::npos || reply.starts_with("-NOPERM")) return heard;
        heard += reply;
      }
    } catch (const std::exception&) {
      return heard + "closed";
    }
  }

  std::string with_number(const std::string& word) {
    if (!word.starts_with('$') || !clients_.contains(word.substr(1))) return word;
    return clients_.at(word.substr(1)).number;
  }
  // Client ids differ between the servers.
  std::string without_numbers(std::string heard) {
    std::vector<std::pair<std::string, std::string>> all = former_;
    for (const auto& [name, speaker] : clients_) all.emplace_back(name, speaker.number);
    for (const auto& [name, number] : all) replace_each(heard, ":" + number + "\r\n", ":$" + name + "\r\n");
    return heard;
  }
  static void replace_each(std::string& text, const std::string& what, const std::string& with) {
    for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what))
      text.replace(at, what.size(), with);
  }

  std::string blocked_clients() {
    const std::string info = observer_.call({"INFO", "clients"});
    const std::size_t at = info.find("blocked_clients:");
    return info.substr(at, info.find('\r', at) - at);
  }

  std::string path_;
  WireClient observer_;
  std::map<std::string, Speaker> clients_;
  std::vector<std::pair<std::string, std::string>> former_;  // names and ids of clients that reconnected
};

class Conversations : public ::testing::TestWithParam<const char*> {};

TEST_P(Conversations, sound_as_with_redis) {
  RunningServer weir;
  const RedisServer redis;
  Conversation ours(weir.path());
  Conversation theirs(redis.path());
  std::ifstream in(std::string(WEIR_CONVERSATIONS_FOLDER) + "/" + GetParam());
  ASSERT_TRUE(in.is_open());
  std::string line;
  for (std::size_t number = 1; std::getline(in, line); ++number) {
    if (line.empty() || line[0] == '#') continue;
    const auto words = split_words(line);
    ASSERT_TRUE(words && words->size() > 1) << number;
    EXPECT_EQ(ours.say(*words), theirs.say(*words)) << GetParam() << ':' << number << ": " << line;
  }
}

INSTANTIATE_TEST_SUITE_P(Files, Conversations, ::testing::Values("acl.txt", "events.txt", "tracking.txt"),
                         [](const auto& instance) {
                           const std::string file = instance.param;
                           return file.substr(0, file.find('.'));
                         });

}  // namespace
}  // namespace weir::kv::testing
