// Echo over gRPC, like rpc_echo.cpp over rpc/: server and client each in a process on a
// core, with the same row.
//
//   grpc_echo_bench --bytes 128 --in-flight 1,4,16,64,256 [--connections one|each]
//
// Both ends use the asynchronous API with one thread and one completion queue: the callback API would add
// threads that share the core.
#include <grpc_echo.grpc.pb.h>  // generated
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>

#include "bench/echo_program.hpp"

namespace {

using weir::bench::Echo;
using weir::bench::Text;
using Clock = std::chrono::steady_clock;

using Options = weir::bench::EchoOptions;

struct Call {
  grpc::ServerContext context;
  Text text;
  grpc::ServerAsyncResponseWriter<Text> responder{&context};
};

// Serves one request at a time, repeatedly.
class Served {
 public:
  Served(Echo::AsyncService& service, grpc::ServerCompletionQueue& queue) : service_(service), queue_(queue) {
    take();
  }
  void go_on(bool right) {
    if (!std::exchange(replying_, !replying_)) {
      if (!right) return;  // the server goes
      call_->responder.Finish(call_->text, grpc::Status::OK, this);
    } else {
      take();
    }
  }

 private:
  void take() {
    call_.emplace();
    service_.RequestEcho(&call_->context, &call_->text, &call_->responder, &queue_, &queue_, this);
  }

  Echo::AsyncService& service_;
  grpc::ServerCompletionQueue& queue_;
  std::optional<Call> call_;
  bool replying_ = false;
};

void serve(const Options& options, const std::function<void(const std::string&)>& tell) {
  int port = 0;
  Echo::AsyncService service;
  grpc::ServerBuilder builder;
  builder.SetMaxReceiveMessageSize(-1);
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&service);
  const auto queue = builder.AddCompletionQueue();
  const auto server = builder.BuildAndStart();
  tell(server ? "127.0.0.1:" + std::to_string(port) : "! it did not start");
  std::vector<std::unique_ptr<Served>> calls;
  for (int i = 0; i < *std::ranges::max_element(options.in_flight); ++i)
    calls.push_back(std::make_unique<Served>(service, *queue));
  void* tag = nullptr;
  for (bool right = false; queue->Next(&tag, &right);) static_cast<Served*>(tag)->go_on(right);
}

// One of the calls in flight: when it ends, the next begins.
struct Caller {
  explicit Caller(Echo::Stub& over) : stub(over) {}

  Echo::Stub& stub;
  std::optional<grpc::ClientContext> context;
  std::unique_ptr<grpc::ClientAsyncResponseReader<Text>> reader;
  Text reply;
  grpc::Status status;
  Clock::time_point begun;

  void call(const Text& request, grpc::CompletionQueue& queue) {
    reader.reset();
    context.emplace();
    begun = Clock::now();
    reader = stub.AsyncEcho(&*context, request, &queue);
    reader->Finish(&reply, &status, this);
  }
};

std::shared_ptr<grpc::Channel> connect(const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // else all channels share one connection
  auto channel = grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
  if (!channel->WaitForConnected(std::chrono::system_clock::now() + std::chrono::seconds(10))) {
    fmt::print(stderr, "{}: no connection\n", address);
    std::exit(1);
  }
  return channel;
}

void measure(const std::string& address, const Options& options, int in_flight, pid_t server) {
  std::vector<std::unique_ptr<Echo::Stub>> stubs;
  for (int i = 0; i < (options.each ? in_flight : 1); ++i) stubs.push_back(Echo::NewStub(connect(address)));
  grpc::CompletionQueue queue;
  std::vector<std::unique_ptr<Caller>> callers;
  for (int i = 0; i < in_flight; ++i)
    callers.push_back(std::make_unique<Caller>(*stubs[options.each ? static_cast<std::size_t>(i) : 0]));
  Text request;
  request.set_text(std::string(options.bytes, 'x'));
  const auto phase = [&](Clock::time_point until, std::vector<std::uint64_t>& took) {
    std::uint64_t failed = 0;
    int running = in_flight;
    for (const auto& caller : callers) caller->call(request, queue);
    void* tag = nullptr;
    for (bool right = false; running > 0 && queue.Next(&tag, &right);) {
      auto& caller = *static_cast<Caller*>(tag);
      const auto now = Clock::now();
      failed += caller.status.ok() && caller.reply.text().size() == options.bytes ? 0 : 1;
      took.push_back(static_cast<std::uint64_t>((now - caller.begun).count()));
      now < until ? caller.call(request, queue) : static_cast<void>(--running);
    }
    return failed;
  };
  weir::bench::print_echo("grpc", options, in_flight, server, phase);
}

}  // namespace

// The server's process begins before gRPC starts its threads.
int main(int count, char** values) {
  Options options;
  CLI::App app("Echo over gRPC: calls per second and latencies");
  options.add_to(app);
  CLI11_PARSE(app, count, values);
  return weir::bench::run_echo(
      options, [&](const auto& tell) { serve(options, tell); },
      [&](const std::string& address, int in_flight, pid_t server) {
        measure(address, options, in_flight, server);
      });
}
