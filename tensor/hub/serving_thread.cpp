#include "tensor/hub/serving_thread.hpp"

#include <chrono>

#include "tensor/own_thread.hpp"

namespace weir::tensor {

ServingThread::ServingThread(const char* name) : thread_(start_own_thread(name, [this] { serve(); })) {}

ServingThread::~ServingThread() {
  stop([] {});
}

void ServingThread::serve() {
  io_.run();
  io_.restart();
  io_.run_for(std::chrono::seconds(2));  // returns early once all connections are closed
}

}  // namespace weir::tensor
