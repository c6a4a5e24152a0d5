// Tells attachments about fork().
//
// A child holds copies of its parent's sockets. If it kept them, the parent's death would not close the
// parent's connections and nobody would learn of it; so the child closes them as its first act. For the child
// to find them whole, the fork waits until no other thread is changing them.
#pragma once

namespace weir::link {

class ForkAware {
 public:
  virtual void lock_for_fork() = 0;
  virtual void unlock_after_fork() = 0;
  virtual void abandon_in_child() = 0;  // called with the lock held, only this thread exists

 protected:
  ~ForkAware() = default;
};

// Registered from construction to destruction. Make it the last member, so that it goes first.
class ForkRegistration {
 public:
  explicit ForkRegistration(ForkAware& who);
  ~ForkRegistration();
  ForkRegistration(const ForkRegistration&) = delete;
  ForkRegistration& operator=(const ForkRegistration&) = delete;

 private:
  ForkAware& who_;
};

}  // namespace weir::link
