#include "verbs/cm/peer_watch.hpp"

#include <algorithm>
#include <chrono>

namespace weir::cm {
namespace {

constexpr int refusals_believed = 2;
constexpr std::chrono::seconds longest_way{1};  // of a refusal

}  // namespace

void PeerWatch::greet(const Question& question, link::Clock::time_point now) {
  const bool asks = !question.peer->hears_questions && !asked_.contains(question.peer.get());
  if (asks && asked_.size() < most_asked) ask(question, now, 0);
}

void PeerWatch::ask(std::span<const Question> questions, link::Clock::time_point now) {
  while (!asked_.empty()) {
    const auto& [peer, asked] = *asked_.begin();
    if (now - asked.since >= longest_way) asked.question.peer->hears_questions = true;
    close(peer);
  }
  const auto behind_last = std::ranges::upper_bound(
      questions, last_asked_, {}, [](const Question& each) { return each.message.local_id; });
  const auto first = static_cast<std::size_t>(behind_last - questions.begin());
  for (std::size_t i = 0; i < std::min(most_asked, questions.size()); ++i) {
    const Question& question = questions[(first + i) % questions.size()];
    last_asked_ = question.message.local_id;
    if (asked_.contains(question.peer.get()))
      carrier_.send(*question.peer, question.message);
    else
      ask(question, now, 0);
  }
}

void PeerWatch::ask(const Question& question, link::Clock::time_point now, int refusals) {
  auto probe = carrier_.ask(*question.peer, question.message);
  if (probe == nullptr) return;
  const RemoteHost* const peer = question.peer.get();
  const Asked& asked = asked_.emplace(peer, Asked{question, std::move(probe), now, refusals}).first->second;
  if (!link_.watch(asked.probe->descriptor(), [this, peer] { answered(peer); })) asked_.erase(peer);
}

void PeerWatch::answered(const RemoteHost* peer) {
  const auto found = asked_.find(peer);
  if (found == asked_.end()) return;
  const bool refused = found->second.probe->refused();
  const Question question = found->second.question;
  const auto since = found->second.since;
  const int refusals = found->second.refusals + 1;
  close(peer);
  if (!refused || !question.peer->hears_questions) return;
  if (refusals < refusals_believed) return ask(question, since, refusals);
  closed_(question.peer);
}

void PeerWatch::close(const RemoteHost* peer) {
  const auto found = asked_.find(peer);
  link_.unwatch(found->second.probe->descriptor());
  asked_.erase(found);
}

}  // namespace weir::cm
