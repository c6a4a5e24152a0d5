#include "litmus.hpp"

#include <tuple>

namespace weir::rnic::test {
namespace {

using weak::Kind;
using weak::Progress;
using weak::Step;

struct Open {
  Instruction instruction;
  Progress progress;
  int value = 0;
  auto key() const {
    return std::tuple(progress.source_read, progress.executed, progress.landed, progress.completed, value);
  }
};

struct State {
  std::size_t at = 0, target_at = 0, polled = 0;
  std::array<int, words> memory{};
  std::string loaded;
  std::vector<Open> queue;

  int& word(Word word) { return memory[static_cast<std::size_t>(word)]; }
  auto key() const {
    std::vector<decltype(Open{}.key())> keys;
    for (const Open& open : queue) keys.push_back(open.key());
    return std::tuple(at, target_at, polled, memory, loaded, keys);
  }
};

class Search {
 public:
  explicit Search(const Litmus& litmus) : litmus_(litmus) {}

  std::set<std::string> outcomes() {
    State start;
    start.memory = litmus_.start;
    push(start);
    while (!todo_.empty()) {
      const State state = todo_.back();
      todo_.pop_back();
      expand(state);
    }
    return outcomes_;
  }

 private:
  void push(const State& state) {
    if (seen_.insert(state.key()).second) todo_.push_back(state);
  }

  void expand(const State& state) {
    bool ended = state.at == litmus_.initiator.size() && state.target_at == litmus_.target.size();
    if (state.at != litmus_.initiator.size()) run(state, litmus_.initiator[state.at]);
    if (state.target_at != litmus_.target.size()) {
      State next = state;
      next.loaded += std::to_string(next.word(litmus_.target[next.target_at++].from));
      push(next);
    }
    for (std::size_t i = 0; i < state.queue.size(); ++i) {
      ended = ended && state.queue[i].progress.completed;
      for (const Step step :
           {Step::read_source, Step::execute, Step::sample_again, Step::land, Step::complete})
        if (weak::may(state.queue, i, step,
                      [](const Open& open) -> const Progress& { return open.progress; }))
          take(state, i, step);
    }
    if (!ended) return;
    State last = state;
    outcomes_.insert(last.loaded.empty() ? std::to_string(last.word(litmus_.shown)) : last.loaded);
  }

  void run(State next, const Instruction& instruction) {
    ++next.at;
    switch (instruction.what) {
      case Do::put:
      case Do::put_fenced:
      case Do::get: {
        Open open{.instruction = instruction, .progress = {}};
        open.progress.kind = instruction.what == Do::get ? Kind::reads : Kind::gives;
        open.progress.fenced = instruction.what == Do::put_fenced;
        next.queue.push_back(open);
        break;
      }
      case Do::poll:
        if (!next.queue[next.polled].progress.completed) return;
        ++next.polled;
        break;
      case Do::store_1:
        next.word(instruction.to) = 1;
        break;
      case Do::load:
        next.loaded += std::to_string(next.word(instruction.from));
        break;
    }
    push(next);
  }

  void take(State next, std::size_t index, Step step) {
    Open& open = next.queue[index];
    const bool gives = open.progress.kind == Kind::gives;
    open.progress.take(step);
    if (step == Step::read_source || step == Step::sample_again || (step == Step::execute && !gives))
      open.value = next.word(open.instruction.from);
    if (step == Step::land || (step == Step::execute && gives)) next.word(open.instruction.to) = open.value;
    push(next);
  }

  const Litmus& litmus_;
  std::vector<State> todo_;
  std::set<decltype(State{}.key())> seen_;
  std::set<std::string> outcomes_;
};

}  // namespace

std::set<std::string> all_outcomes(const Litmus& litmus) { return Search(litmus).outcomes(); }

}  // namespace weir::rnic::test
