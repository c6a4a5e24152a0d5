// Owners of verbs objects: each destroys what it holds, and its factory says why it could not be made.
//
// Order is the caller's: a protection domain outlives its regions and queue pairs, a channel its completion
// queues, a completion queue its queue pairs (members declared in that order give it). Factories need a
// device context, and contexts come only from a loaded Provider's libraries. Threading: as verbs; we use each
// from one thread.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "rdma/error.hpp"

namespace weir::rdma {

// Remote peers write our memory where, and only where, a region says so.
enum class Access {
  local,            // the device reads and writes it on our behalf
  remote_write,     // and whoever holds the rkey may write it
  remote_read,      // and whoever holds the rkey may read it
  through_windows,  // peers reach it through windows that are bound in it, not by its rkey
};

class ProtectionDomain {
 public:
  ProtectionDomain() = default;  // holds none
  static Result<ProtectionDomain> allocate(ibv_context* device);
  ibv_pd* get() const { return pd_.get(); }

 private:
  struct Release {
    void operator()(ibv_pd* pd) const { ibv_dealloc_pd(pd); }
  };
  explicit ProtectionDomain(ibv_pd* pd) : pd_(pd) {}
  std::unique_ptr<ibv_pd, Release> pd_;
};

// Memory that the device may use. Does not own the memory: it must outlive the region.
class MemoryRegion {
 public:
  static Result<MemoryRegion> enroll(const ProtectionDomain& pd, std::span<std::byte> memory, Access access);
  // All memory of this process, also what it maps later, for the device to read on our behalf: implicit
  // on-demand paging (ibv_reg_mr(3)), so nothing is pinned. Errc::device_error if the device cannot.
  static Result<MemoryRegion> enroll_everything(const ProtectionDomain& pd);
  // The same as enroll(), but peers and windows name its first byte `address`, which has its page offset.
  static Result<MemoryRegion> enroll_at(const ProtectionDomain& pd, std::span<std::byte> memory,
                                        std::uint64_t address, Access access);
  std::uint32_t lkey() const { return mr_->lkey; }
  std::uint32_t rkey() const { return mr_->rkey; }
  ibv_mr* get() const { return mr_.get(); }

 private:
  struct Release {
    void operator()(ibv_mr* mr) const { ibv_dereg_mr(mr); }
  };
  explicit MemoryRegion(ibv_mr* mr) : mr_(mr) {}
  std::unique_ptr<ibv_mr, Release> mr_;
};

// A part of a region that is reachable through one queue pair only, once it is bound there (IBA 10.6.7, type
// 2). The queue pair outlives the binding.
class MemoryWindow {
 public:
  static Result<MemoryWindow> allocate(const ProtectionDomain& pd);
  ibv_mw* get() const { return mw_.get(); }

 private:
  struct Release {
    void operator()(ibv_mw* mw) const { ibv_dealloc_mw(mw); }
  };
  explicit MemoryWindow(ibv_mw* mw) : mw_(mw) {}
  std::unique_ptr<ibv_mw, Release> mw_;
};

// The file descriptor that tells of completions while nobody polls. Non-blocking.
class CompletionChannel {
 public:
  static Result<CompletionChannel> create(ibv_context* device);
  int fd() const { return channel_->fd; }
  ibv_comp_channel* get() const { return channel_.get(); }
  // Takes one pending event, if there is one, and acknowledges it; with more the descriptor stays readable.
  void take_event();

 private:
  struct Release {
    void operator()(ibv_comp_channel* channel) const { ibv_destroy_comp_channel(channel); }
  };
  explicit CompletionChannel(ibv_comp_channel* channel) : channel_(channel) {}
  std::unique_ptr<ibv_comp_channel, Release> channel_;
};

// Receives for any number of queue pairs. Errc::device_error if the device has none.
class SharedReceiveQueue {
 public:
  SharedReceiveQueue() = default;  // holds none
  static Result<SharedReceiveQueue> create(const ProtectionDomain& pd, std::uint32_t depth);
  ibv_srq* get() const { return srq_.get(); }

 private:
  struct Release {
    void operator()(ibv_srq* srq) const { ibv_destroy_srq(srq); }
  };
  explicit SharedReceiveQueue(ibv_srq* srq) : srq_(srq) {}
  std::unique_ptr<ibv_srq, Release> srq_;
};

class CompletionQueue {
 public:
  // `vector` picks the interrupt that signals the channel, modulo what the device has.
  static Result<CompletionQueue> create(ibv_context* device, int entries, const CompletionChannel& channel,
                                        int vector);
  int entries() const { return cq_->cqe; }
  ibv_cq* get() const { return cq_.get(); }
  // How many completions were written to `into`; negative: the queue is broken.
  int poll(std::span<ibv_wc> into) {
    return ibv_poll_cq(cq_.get(), static_cast<int>(into.size()), into.data());
  }
  // The next completion makes the channel readable; with `solicited_only` the next whose sender asked for it,
  // or that failed. Poll once more afterwards: one may have slipped in before.
  bool arm(bool solicited_only) { return ibv_req_notify_cq(cq_.get(), solicited_only ? 1 : 0) == 0; }

 private:
  struct Release {
    void operator()(ibv_cq* cq) const { ibv_destroy_cq(cq); }
  };
  explicit CompletionQueue(ibv_cq* cq) : cq_(cq) {}
  std::unique_ptr<ibv_cq, Release> cq_;
};

}  // namespace weir::rdma
