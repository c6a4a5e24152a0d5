// The one way through which every change of the data passes.
//
// Events: changed(), gone() and changed_all() are called for each change after it was made. Code that waits
// for or watches a key depends on them.
//
// Words: while somebody listens, each change is reported as requests that make the same change in a copy of
// the data, whenever and wherever they run. A command whose own words do so reports nothing: its words are
// taken as sent if the call changed anything. Any other command supplies the words itself (say(), by way of
// Call::replay_as()), and then its own are not used. What a transaction or a script did is reported when the
// outermost call ends, in one piece, between MULTI and EXEC if it is more than one request.
//
// Invariants:
// - A call that changed nothing reports nothing.
// - Requests are reported in the order in which the changes were made; a key that expired during a command
//   is reported before that command.
// - While nobody listens nothing is gathered, and a call costs a few additions.
//
// Threading: the server's one thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kv/effects/request_text.hpp"
#include "kv/server/blocking.hpp"
#include "kv/server/tracking.hpp"
#include "kv/server/watches.hpp"
#include "kv/store/keyspace.hpp"

namespace weir::kv {

class EffectListener {
 public:
  virtual ~EffectListener() = default;
  // One request that acts on database `db`, as RESP, valid during the call only. MULTI and EXEC come as
  // requests of their own, and nothing else comes between them.
  virtual void effect(int db, std::string_view request) = 0;
};

class Effects {
 public:
  Effects(Watches& watches, Blocking& blocking, Tracking& tracking)
      : watches_(watches), blocking_(blocking), tracking_(tracking) {}

  // A command changed the key.
  void changed(const Keyspace& db, std::string_view key) {
    ++changes_;
    if (watches_.any()) watches_.touch(db.index(), key);
    if (blocking_.any()) blocking_.signal(db.index(), key);
    if (tracking_.any()) tracking_.changed(key);
  }
  // The key is about to be removed without a command asking for it.
  void gone(const Keyspace& db, std::string_view key, Keyspace::Gone why);
  // A command changed something other than one key: a whole database, a library of functions.
  void changed_all(std::uint64_t changes = 1) { changes_ += changes; }
  std::uint64_t changes() const { return changes_; }  // since the server started

  bool heard() const { return !listeners_.empty(); }
  void listen(EffectListener& listener) { listeners_.push_back(&listener); }
  void ignore(EffectListener& listener);

  // Whether there are changes that listeners have not yet been told of: a copy of the data that is begun now
  // already contains them.
  bool untold() const { return !gathered_.empty(); }

  // What the running command did, in other words than its own.
  void say(int db, std::span<const RequestWord> words);

  // While one exists, reports are held back; they go out in one piece when the last one ends.
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
      // A command that ran this one has said by it what it did.
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
    std::size_t end;  // of its request in requests_
  };

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
  std::vector<EffectListener*> listeners_;
  std::uint64_t changes_ = 0;
  std::string requests_;  // gathered, one behind the other
  std::vector<Gathered> gathered_;
  int depth_ = 0;      // of Running and Together
  bool said_ = false;  // the innermost command has said what it did
};

}  // namespace weir::kv
