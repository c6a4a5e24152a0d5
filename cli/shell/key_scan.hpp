// All keys of a database, one SCAN at a time.
#pragma once

#include <string>
#include <vector>

#include "cli/client/session.hpp"

namespace weir::shell {

class KeyScan {
 public:
  KeyScan(client::Session& session, std::string pattern, long long count)
      : session_(session), pattern_(std::move(pattern)), count_(count) {}

  bool done() const { return done_; }

  // The next keys, possibly none; sends one SCAN.
  client::Result<std::vector<std::string>> next() {
    std::vector<std::string> command{"SCAN", cursor_};
    if (!pattern_.empty()) command.insert(command.end(), {"MATCH", pattern_});
    if (count_ > 0) command.insert(command.end(), {"COUNT", std::to_string(count_)});
    auto reply = session_.ask(command);
    if (!reply) return std::unexpected(std::move(reply.error()));
    if (reply->is_error()) return client::fail(client::ErrorKind::refused, "ERROR: " + reply->text);
    if (reply->elements.size() != 2)
      return client::fail(client::ErrorKind::protocol, "Non ARRAY response from SCAN!");
    cursor_ = reply->elements[0].text;
    done_ = cursor_ == "0";
    std::vector<std::string> keys;
    for (auto& key : reply->elements[1].elements) keys.push_back(std::move(key.text));
    return keys;
  }

 private:
  client::Session& session_;
  std::string pattern_;
  long long count_;
  std::string cursor_ = "0";
  bool done_ = false;
};

}  // namespace weir::shell
