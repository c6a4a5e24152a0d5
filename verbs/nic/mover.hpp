// The target's side of handed-over copies (docs/decisions/0006): a thread that copies between this process's
// memory and the lanes of its segment, for neighbours that the kernel does not let copy themselves.
//
// It waits only for work, so two processes whose movers serve each other cannot deadlock. A lane's words are
// read once and checked against our own protection table; the kernel makes the copy (pread, pwrite on the
// segment's file), so that missing memory is an error and not a trap.
//
// Threading: all functions from any thread but its own.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "link/unique_fd.hpp"
#include "rnic/memory/segment_layout.hpp"

namespace weir::verbs {

class Mover {
 public:
  // `on_late` runs on the mover's thread after it found copies that their initiators had taken back: those
  // processes must be told to retry.
  Mover(rnic::SegmentHeader& segment, link::UniqueFd segment_file, const rnic::TptEntry* table,
        std::function<void()> on_late);
  ~Mover();
  Mover(const Mover&) = delete;
  Mover& operator=(const Mover&) = delete;

  void start();  // if it does not run yet
  void stop();   // for good
  // Returns once no copy that began before is running: after a key was invalidated, none uses it any more.
  void finish_copy();
  // Gives back the lanes of a process that is gone.
  void reclaim(rnic::Slot dead);

 private:
  void run();
  bool serve_all();
  void serve(std::uint32_t lane);
  rnic::LaneAnswer answer(std::uint32_t lane, const rnic::CopyLane& job) const;
  bool allowed(const rnic::CopyLane& job) const;
  bool copy(std::uint32_t lane, const rnic::CopyLane& job) const;

  rnic::SegmentHeader& segment_;
  const link::UniqueFd file_;
  const rnic::TptEntry* const table_;
  const std::function<void()> on_late_;
  bool was_late_ = false;
  std::mutex copying_;  // held while a copy runs
  std::atomic<bool> stopping_ = false;
  std::mutex starting_;  // guards thread_
  std::thread thread_;
};

}  // namespace weir::verbs
