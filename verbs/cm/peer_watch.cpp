#include "verbs/cm/peer_watch.hpp"

#include <algorithm>

namespace weir::cm {
namespace {

constexpr int refusals_believed = 2;

}  // namespace

void PeerWatch::ask(std::span<const Question> questions) {
  while (!asked_.empty()) close(asked_.begin()->first);
  const auto behind_last = std::ranges::upper_bound(
      questions, last_asked_, {}, [](const Question& each) { return each.message.local_id; });
  const auto first = static_cast<std::size_t>(behind_last - questions.begin());
  for (std::size_t i = 0; i < std::min(most_asked, questions.size()); ++i) {
    const Question& question = questions[(first + i) % questions.size()];
    last_asked_ = question.message.local_id;
    if (asked_.contains(question.peer.get()))
      carrier_.send(*question.peer, question.message);
    else
      ask(question, 0);
  }
}

void PeerWatch::ask(const Question& question, int refusals) {
  auto probe = carrier_.ask(*question.peer, question.message);
  if (probe == nullptr) return;
  const RemoteHost* const peer = question.peer.get();
  const Asked& asked = asked_.emplace(peer, Asked{question, std::move(probe), refusals}).first->second;
  if (!link_.watch(asked.probe->descriptor(), [this, peer] { answered(peer); })) asked_.erase(peer);
}

void PeerWatch::answered(const RemoteHost* peer) {
  const auto found = asked_.find(peer);
  if (found == asked_.end()) return;
  const bool refused = found->second.probe->refused();
  const Question question = found->second.question;
  const int refusals = found->second.refusals + 1;
  close(peer);
  if (!refused) return;
  if (refusals < refusals_believed) return ask(question, refusals);
  closed_(question.peer);
}

void PeerWatch::close(const RemoteHost* peer) {
  const auto found = asked_.find(peer);
  link_.unwatch(found->second.probe->descriptor());
  asked_.erase(found);
}

}  // namespace weir::cm
