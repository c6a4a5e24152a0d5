// A thread that is cancelled (pthread_cancel) before it makes a call.
#pragma once

#include <pthread.h>

#include <functional>

namespace weir::test {

// Whether such a thread is ended in `call`, which it would be in the first cancellation point there.
inline bool is_ended_in(std::function<void()> call) {
  pthread_t thread;
  const auto cancelled = [](void* call_of_test) -> void* {
    int before;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    pthread_cancel(pthread_self());
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &before);
    (*static_cast<std::function<void()>*>(call_of_test))();
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    return nullptr;
  };
  if (pthread_create(&thread, nullptr, cancelled, &call) != 0) return false;
  void* result = nullptr;
  pthread_join(thread, &result);
  return result == PTHREAD_CANCELED;
}

}  // namespace weir::test
