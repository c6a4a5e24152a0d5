// The executable model: in which order a device may do the parts of the requests of one send queue.
//
//   post -> read its source -> execute at the target -> land what comes back -> complete -> poll
//
// A request that gives data (SEND, WRITE) reads its source, one that brings data back (READ, atomic) lands
// it. may() says which step a device may take next. The weak NIC takes a step only if it may, and the tests
// enumerate all orders of steps to know which outcomes a program must expect. What holds for every device:
//   - requests execute in the order in which they were posted (IBA vol. 1, 9.5, table 79)
//   - a fenced request begins when all READs and atomics before it have landed (10.8.3.3)
//   - a READ may see later WRITEs and SENDs, but no later READ or atomic before it (table 79)
//   - what READs and atomics bring back lands in order, and requests complete in order (10.8.5)
// Pure.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace weir::rnic::weak {

// local: a bind or an invalidation, which waits for everything before it.
enum class Kind : std::uint8_t { gives, reads, atomic, local };
enum class Step : std::uint8_t { read_source, execute, sample_again, land, complete };

struct Progress {
  Kind kind = Kind::gives;
  bool fenced = false;
  bool source_read = false, executed = false, landed = false, completed = false;

  bool brings() const { return kind == Kind::reads || kind == Kind::atomic; }
  bool over() const { return executed && (landed || !brings()); }
  void take(Step step) {
    switch (step) {
      case Step::read_source:
        source_read = true;
        break;
      case Step::execute:
        executed = true;
        break;
      case Step::land:
        landed = true;
        break;
      case Step::complete:
        completed = true;
        break;
      case Step::sample_again:
        break;
    }
  }
};

// `queue`: requests in the order in which they were posted; At: from one of its elements to its Progress.
template <class Queue, class At>
bool may(const Queue& queue, std::size_t index, Step step, At progress_of) {
  const Progress& one = progress_of(queue[index]);
  const auto before = [&](auto holds) {
    for (std::size_t i = 0; i < index; ++i)
      if (!holds(progress_of(queue[i]))) return false;
    return true;
  };
  const auto behind = [&](auto holds) {
    for (std::size_t i = index + 1; i < queue.size(); ++i)
      if (!holds(progress_of(queue[i]))) return false;
    return true;
  };
  const auto landed = [](const Progress& other) { return !other.brings() || other.landed; };
  const bool begins = !one.fenced || before(landed);
  switch (step) {
    case Step::read_source:
      return one.kind == Kind::gives && !one.source_read && begins;
    case Step::execute:
      if (one.executed || (one.kind == Kind::gives && !one.source_read)) return false;
      if (one.kind == Kind::local) return before([](const Progress& other) { return other.completed; });
      return begins && before([](const Progress& other) { return other.executed; });
    case Step::sample_again:
      return one.kind == Kind::reads && one.executed && !one.landed &&
             behind([](const Progress& other) { return !other.brings() || !other.executed; });
    case Step::land:
      return one.brings() && one.executed && !one.landed && before(landed);
    case Step::complete:
      return one.over() && !one.completed && before([](const Progress& other) { return other.completed; });
  }
  return false;
}

}  // namespace weir::rnic::weak
