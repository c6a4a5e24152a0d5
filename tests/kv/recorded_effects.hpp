// Records the effects that a running server reports, and replays them into another server.
#pragma once

#include <gtest/gtest.h>

#include "kv/resp/request.hpp"
#include "kv/store/digest.hpp"
#include "kv/store/hash.hpp"
#include "tests/kv/running_server.hpp"

namespace weir::kv::testing {

// The words of a request as one line.
inline std::string words_of(std::string_view request) {
  RequestParser parser;
  std::string line;
  if (parser.parse(request, {}) != RequestParser::Status::complete) return "not one whole request";
  if (parser.consumed() != request.size()) return "more than one request";
  for (const Argument& word : parser.arguments()) line.append(line.empty() ? "" : " ").append(word.text);
  return line;
}

class RecordedEffects final : public EffectListener {
 public:
  struct Told {
    int db;
    std::string request;
  };

  explicit RecordedEffects(RunningServer& server) : server_(server) {
    server_.run([this](Server& s) { s.effects.listen(*this); });
  }
  ~RecordedEffects() override {
    server_.run([this](Server& s) { s.effects.ignore(*this); });
  }
  void effect(int db, std::string_view request) override { told_.push_back({db, std::string(request)}); }

  // What was reported since the last call.
  std::vector<Told> take() {
    return server_.run([this](Server&) { return std::exchange(told_, {}); });
  }

 private:
  RunningServer& server_;
  std::vector<Told> told_;
};

inline void replay(WireClient& into, const std::vector<RecordedEffects::Told>& told) {
  for (const auto& [db, request] : told) {
    into.call({"SELECT", std::to_string(db)});
    into.send(request);
    const std::string reply = into.reply();
    EXPECT_TRUE(reply[0] != '-' && reply.find("\r\n-") == std::string::npos)
        << words_of(request) << ": " << reply;
  }
}

// When a hash's fields expire.
inline std::string field_times(const Value& value) {
  if (value.type() != Type::hash || value.hash().times() == nullptr) return {};
  std::vector<std::string> times;
  value.hash().for_each_stored([&](std::string_view field, std::string_view) {
    times.push_back(std::to_string(value.hash().time_of(field)) + '@' + std::string(field));
  });
  std::ranges::sort(times);
  std::string text;
  for (const std::string& time : times) text += ' ' + time;
  return text;
}

// Everything that two servers must agree on: keys, values, expiry times, functions.
inline std::string state_of(RunningServer& server) {
  const std::string functions = server.connect().call({"FUNCTION", "LIST", "WITHCODE"});
  return server.run([&](Server& s) {
    std::vector<std::string> lines;
    for (const auto& db : s.databases) {
      db->records().for_each([&](const Record& record) {
        Digest value;
        mix_value(value, record);
        lines.push_back(std::to_string(db->index()) + ' ' + std::string(record.key()) + ' ' +
                        std::string(type_name(record.value.type())) + ' ' + value.hex() + ' ' +
                        std::to_string(record.expires_at_ms) + field_times(record.value));
        return true;
      });
    }
    std::ranges::sort(lines);
    std::string text = digest_of(s.databases).hex() + '\n' + functions;
    for (const std::string& line : lines) text += line + '\n';
    return text;
  });
}

}  // namespace weir::kv::testing
