// The single path through which every change of the data passes.
//
// Events: changed(), gone() and changed_all() are called after each change. Code that waits for a key,
// watches one or moves one depends on them.
//
// Words: while there is a listener, each change is reported as requests that make the same change in a copy
// of the data, whenever and wherever they run. A command whose own words do that reports nothing: its words
// are taken as sent if the call changed anything. Any other command supplies the words itself (say(), through
// Call::replay_as()), and its own are not used. The work of a transaction or script is reported when the
// outermost call ends, in one piece, between MULTI and EXEC if it is more than one request.
//
// Invariants:
// - A call that changed nothing reports nothing, FLUSHALL and FLUSHDB excepted: copies that differ are
// emptied.
// - Requests are reported in the order of the changes. A key that expired during a command
//   is reported before that command.
// - Without listeners nothing is gathered, and a call costs a few additions.
//
// Threading: the server's one thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kv/clients/blocking.hpp"
#include "kv/clients/tracking.hpp"
#include "kv/clients/watches.hpp"
#include "kv/core/keys_under_way.hpp"
#include "kv/resp/request_text.hpp"
#include "kv/store/keyspace.hpp"

namespace weir::kv {

class EffectListener {
 public:
  virtual ~EffectListener() = default;
  // One request on database `db`, as RESP, valid only during the call. MULTI and EXEC are requests of their
  // own, and only requests of their transaction come between them.
  virtual void effect(int db, std::string_view request) = 0;
};

class Effects {
 public:
  Effects(Watches& watches, Blocking& blocking, Tracking& tracking, KeysUnderWay& under_way)
      : watches_(watches), blocking_(blocking), tracking_(tracking), under_way_(under_way) {}

  // How keys are reported that go without a command.
  struct DeletionWords {
    std::string_view expired = "DEL", evicted = "DEL";
  };
  DeletionWords deletion_words;

  // A command has changed the key.
  void changed(const Keyspace& db, std::string_view key) {
    ++changes_;
    if (watches_.any()) watches_.touch(db.index(), key);
    if (blocking_.any()) blocking_.signal(db.index(), key);
    if (tracking_.any()) tracking_.changed(key);
    if (under_way_.any()) under_way_.touch(db.index(), key);
  }
  // The key is about to be removed although no command asked for it.
  void gone(const Keyspace& db, std::string_view key, Keyspace::Gone why);
  // Fields of the hash at the key were removed although no command asked for it.
  void fields_gone(const Keyspace& db, std::string_view key, std::span<const std::string> fields);
  // A command changed more than one key: a whole database, or a library of functions.
  void changed_all(std::uint64_t changes = 1) {
    changes_ += changes;
    if (under_way_.any()) under_way_.touch_all();
  }
  std::uint64_t changes() const { return changes_; }  // since the server started

  bool heard() const { return !listeners_.empty(); }
  void listen(EffectListener& listener) { listeners_.push_back(&listener); }
  void ignore(EffectListener& listener);

  // Whether some changes are not yet reported. A copy of the data made now would
  // already contain them.
  bool untold() const { return !gathered_.empty(); }

  // The effect of the running command, in other words than its own.
  void say(int db, std::span<const RequestWord> words);

  // While one exists, reports are held back; when the last one ends they are sent in one piece.
  class Together {
   public:
    explicit Together(Effects& effects) : effects_(effects) { ++effects_.depth_; }
    ~Together() { effects_.leave(); }
    Together(const Together&) = delete;
    Together& operator=(const Together&) = delete;

   private:
    Effects& effects_;
  };

  // Exists while a command runs.
  class Running {
   public:
    Running(Effects& effects, int db, Arguments words)
        : effects_(effects),
          words_(words),
          db_(db),
          changes_before_(effects.changes_),
          others_said_(std::exchange(effects.said_, false)) {
      ++effects_.depth_;
    }
    ~Running() {
      const bool changed = effects_.changes_ != changes_before_;
      if (changed && !effects_.said_ && effects_.heard()) effects_.gather(db_, words_);
      // A command that ran this one has thereby supplied its words, too.
      effects_.said_ = others_said_ || changed;
      effects_.leave();
    }
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;

   private:
    Effects& effects_;
    Arguments words_;
    int db_;
    std::uint64_t changes_before_;
    bool others_said_;
  };

 private:
  struct Gathered {
    int db;
    std::size_t end;  // end of its request in requests_
  };

  void touched(const Keyspace& db, std::string_view key) {
    // Clients that read through a stream's group are told when the stream goes.
    if (blocking_.any()) blocking_.signal(db.index(), key);
    if (tracking_.any()) tracking_.changed(key);
    if (under_way_.any()) under_way_.touch(db.index(), key);
  }
  // One more request, of no running command; it is reported at once unless a command runs.
  void gather_now(int db, std::span<const RequestWord> words);
  void gather(int db, Arguments words) {
    append_request(requests_, words);
    gathered_.push_back({db, requests_.size()});
  }
  void leave() {
    if (--depth_ == 0 && !gathered_.empty()) tell();
  }
  void tell();
  void tell(int db, std::string_view request);

  Watches& watches_;
  Blocking& blocking_;
  Tracking& tracking_;
  KeysUnderWay& under_way_;
  std::vector<EffectListener*> listeners_;
  std::uint64_t changes_ = 0;
  std::string requests_;  // gathered requests, one after the other
  std::vector<Gathered> gathered_;
  int depth_ = 0;      // number of Running and Together objects
  bool said_ = false;  // the innermost command has supplied its words
};

}  // namespace weir::kv
