#include "kv/effects/effects.hpp"

#include <algorithm>
#include <array>

namespace weir::kv {

namespace {
// Memory of one large effect is released after it has been reported.
constexpr std::size_t kept_requests = 64u << 10;
constexpr std::string_view multi_request = "*1\r\n$5\r\nMULTI\r\n";
constexpr std::string_view exec_request = "*1\r\n$4\r\nEXEC\r\n";
}  // namespace

void Effects::gone(const Keyspace& db, std::string_view key, Keyspace::Gone why) {
  const std::string_view word =
      why == Keyspace::Gone::evicted ? deletion_words.evicted : deletion_words.expired;
  const std::array<RequestWord, 2> words{word, key};
  gather_now(db.index(), words);
  if (watches_.any()) {
    why == Keyspace::Gone::evicted ? watches_.touch(db.index(), key) : watches_.expire(db.index(), key);
  }
  touched(db, key);
}

void Effects::fields_gone(const Keyspace& db, std::string_view key, std::span<const std::string> fields) {
  if (heard()) {
    std::vector<RequestWord> words{"HDEL", key};
    for (const std::string& field : fields) words.emplace_back(field);
    gather_now(db.index(), words);
  }
  if (watches_.any()) watches_.touch(db.index(), key);
  touched(db, key);
}

void Effects::gather_now(int db, std::span<const RequestWord> words) {
  if (!heard()) return;
  append_request(requests_, words);
  gathered_.push_back({db, requests_.size()});
  if (depth_ == 0) tell();
}

void Effects::say(int db, std::span<const RequestWord> words) {
  said_ = true;
  if (!heard()) return;
  append_request(requests_, words);
  gathered_.push_back({db, requests_.size()});
}

void Effects::ignore(EffectListener& listener) {
  std::erase(listeners_, &listener);
  if (heard()) return;
  requests_.clear();
  gathered_.clear();
}

void Effects::tell() {
  const bool several = gathered_.size() > 1;
  if (several) tell(gathered_.front().db, multi_request);
  std::size_t begin = 0;
  for (const Gathered& one : gathered_) {
    tell(one.db, std::string_view(requests_).substr(begin, one.end - begin));
    begin = one.end;
  }
  if (several) tell(gathered_.back().db, exec_request);
  gathered_.clear();
  requests_.clear();
  if (requests_.capacity() > kept_requests) requests_.shrink_to_fit();
}

void Effects::tell(int db, std::string_view request) {
  for (EffectListener* listener : listeners_) listener->effect(db, request);
}

}  // namespace weir::kv
