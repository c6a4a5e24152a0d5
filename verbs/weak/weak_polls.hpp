// Completions of a weak NIC (`weir run --weak`): shown some polls later, fewer of them in one poll, and with
// garbage in the fields that a failed one leaves undefined (rnic/weak/weaknesses.hpp).
//
// A completion is not held back where its program may count on it: from ibv_req_notify_cq() on, for nothing
// announces what the CQ held before, to the first poll after the event, which says that there is something.
// One for each CQ; any thread.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>
#include <cstring>

#include "rnic/weak/requests.hpp"

namespace weir::verbs {

class WeakPolls {
 public:
  // How many of at most `count` completions the next poll may show; 0: none, whatever the CQ holds.
  int show(rnic::weak::Weak& weak, std::uint32_t cq, int count) {
    if (!weak.plan.has(rnic::weak::Weakness::completions) || shows_all_.load(std::memory_order_acquire))
      return count;
    const int shown = choose(weak.plan.seed, cq, count);
    if (shown != count) weak.tally.withheld.fetch_add(1, std::memory_order_relaxed);
    return shown;
  }
  void armed() {
    shows_all_.store(true, std::memory_order_release);
    blind_.store(0, std::memory_order_relaxed);
  }
  // Such a poll was made while the CQ was not armed.
  void polled_unarmed() { shows_all_.store(false, std::memory_order_release); }

 private:
  int choose(std::uint64_t seed, std::uint32_t cq, int count) {
    if (blind_.load(std::memory_order_relaxed) > 0) {
      blind_.fetch_sub(1, std::memory_order_relaxed);
      return 0;
    }
    rnic::weak::Choices choices(seed ^ 0xc0, cq, polls_.fetch_add(1, std::memory_order_relaxed));
    if (choices.one_in(12)) {
      blind_.store(static_cast<std::int32_t>(choices.pick(8)), std::memory_order_relaxed);
      return 0;
    }
    return choices.one_in(3) ? 1 + static_cast<int>(choices.pick(static_cast<std::uint32_t>(count))) : count;
  }

  std::atomic<std::uint64_t> polls_{0};
  std::atomic<std::int32_t> blind_{0};  // polls that show nothing
  std::atomic<bool> shows_all_{false};
};

inline void fill_undefined(ibv_wc& failed) {
  const ibv_wc valid = failed;
  std::memset(&failed, 0xa5, sizeof failed);
  failed.wr_id = valid.wr_id;
  failed.status = valid.status;
  failed.qp_num = valid.qp_num;
  failed.vendor_err = valid.vendor_err;
}

}  // namespace weir::verbs
