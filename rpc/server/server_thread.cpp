#include "rpc/server/server_thread.hpp"

#include <pthread.h>

#include <asio/post.hpp>
#include <csignal>
#include <utility>

namespace weir::rpc {

// Signals belong to the program's threads, so this thread blocks them all.
ServerThread::ServerThread(const std::string& name) : guard_(io_.get_executor()) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { run(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_setname_np(thread_.native_handle(), name.substr(0, 15).c_str());
}

ServerThread::~ServerThread() {
  if (thread_.joinable()) end([] {});
}

void ServerThread::end(std::function<void()> farewell) {
  asio::post(io_, [this, farewell = std::move(farewell)] {
    farewell();
    io_.stop();
  });
  thread_.join();
}

void ServerThread::run() {
  constexpr int most_turns = 10'000;  // in case a coroutine posts to itself for ever
  io_.run();
  io_.restart();
  for (int i = 0; i < most_turns && io_.poll_one() > 0;) ++i;
}

}  // namespace weir::rpc
