// Sends tensors of several sizes there and back with TensorPipe, PyTorch's transport for RPC, over one of its
// transports: ibv, which is verbs, or uv, which is TCP. Tensors use the channel "basic", which uses the same
// transport, so no other path can move the bytes.
//
// usage: tensorpipe_exchange serve TRANSPORT ADDRESS:PORT
//        tensorpipe_exchange fetch TRANSPORT ADDRESS:PORT [BYTES COUNT]     the server's address
//
// The server sends back what it gets. With BYTES and COUNT, the client requests that many bytes COUNT times
// instead, and prints the median time of a request in seconds.
#include <tensorpipe/tensorpipe.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <memory>
#include <string>
#include <vector>

namespace {

using tensorpipe::Allocation;
using tensorpipe::CpuBuffer;
using tensorpipe::Descriptor;
using tensorpipe::Error;
using tensorpipe::Message;
using tensorpipe::Pipe;
using Bytes = std::vector<unsigned char>;

void must(const Error& error, const char* what) {
  if (!error) return;
  std::fprintf(stderr, "%s: %s\n", what, error.what().c_str());
  std::exit(EXIT_FAILURE);
}

std::unique_ptr<tensorpipe::Context> context_of(const std::string& transport) {
  auto context = std::make_unique<tensorpipe::Context>();
  auto made = transport == "ibv" ? tensorpipe::transport::ibv::create() : tensorpipe::transport::uv::create();
  if (!made->isViable()) {
    std::fprintf(stderr, "TensorPipe's transport %s is not viable here\n", transport.c_str());
    std::exit(EXIT_FAILURE);
  }
  context->registerTransport(0, transport, std::move(made));
  context->registerChannel(0, "basic", tensorpipe::channel::basic::create());
  return context;
}

struct Received {
  std::string metadata;
  std::vector<Bytes> tensors;
};

// Receives into `memory`, which is reused if it has the right size.
void receive(Pipe& pipe, Received& into) {
  std::promise<Descriptor> described;
  pipe.readDescriptor([&](const Error& error, Descriptor descriptor) {
    must(error, "reading a descriptor");
    described.set_value(std::move(descriptor));
  });
  const Descriptor descriptor = described.get_future().get();
  into.metadata = descriptor.metadata;
  into.tensors.resize(descriptor.tensors.size());
  Allocation allocation;
  for (std::size_t i = 0; i < into.tensors.size(); ++i) {
    into.tensors[i].resize(descriptor.tensors[i].length);
    allocation.tensors.push_back({CpuBuffer{into.tensors[i].data()}});
  }
  std::promise<void> done;
  pipe.read(std::move(allocation), [&](const Error& error) {
    must(error, "reading");
    done.set_value();
  });
  done.get_future().get();
}

void send(Pipe& pipe, std::string metadata, std::vector<Bytes>& tensors) {
  Message message;
  message.metadata = std::move(metadata);
  for (Bytes& each : tensors) {
    Message::Tensor tensor;
    tensor.buffer = CpuBuffer{each.data()};
    tensor.length = each.size();
    message.tensors.push_back(std::move(tensor));
  }
  std::promise<void> done;
  pipe.write(std::move(message), [&](const Error& error) {
    must(error, "writing");
    done.set_value();
  });
  done.get_future().get();
}

// A message's metadata say what to do: "echo", "end", or how many bytes to send.
void serve(const std::string& transport, const std::string& where) {
  const auto context = context_of(transport);
  const auto listener = context->listen({transport + "://" + where});
  std::promise<std::shared_ptr<Pipe>> accepted;
  listener->accept([&](const Error& error, std::shared_ptr<Pipe> pipe) {
    must(error, "accepting");
    accepted.set_value(std::move(pipe));
  });
  std::printf("listening at %s\n", listener->url(transport).c_str());
  std::fflush(stdout);
  const std::shared_ptr<Pipe> pipe = accepted.get_future().get();
  std::vector<Bytes> wanted(1);
  for (Received got; receive(*pipe, got), got.metadata != "end";) {
    if (got.metadata == "echo") {
      send(*pipe, "echo", got.tensors);
      continue;
    }
    wanted[0].resize(std::stoull(got.metadata));
    send(*pipe, "wanted", wanted);
  }
  std::vector<Bytes> none;
  send(*pipe, "end", none);
  Received closed;
  std::printf("served\n");
  pipe->close();
}

bool exchange(Pipe& pipe) {
  std::vector<Bytes> tensors;
  for (const std::size_t bytes : {1UL, 4096UL, 1'000'000UL, 1UL << 24}) {
    Bytes& tensor = tensors.emplace_back(bytes);
    for (std::size_t i = 0; i < bytes; ++i) tensor[i] = static_cast<unsigned char>(i * 2654435761U >> 13);
  }
  for (int round = 0; round < 20; ++round) {
    send(pipe, "echo", tensors);
    Received got;
    receive(pipe, got);
    if (got.tensors != tensors) return false;
    tensors[round % tensors.size()].back() ^= 1U;
  }
  return true;
}

void measure(Pipe& pipe, const std::string& bytes, int count) {
  std::vector<double> took;
  std::vector<Bytes> none;
  Received got;
  for (int i = 0; i < count + 2; ++i) {
    const auto begun = std::chrono::steady_clock::now();
    send(pipe, bytes, none);
    receive(pipe, got);
    took.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count());
  }
  took.erase(took.begin(), took.begin() + 2);
  std::ranges::nth_element(took, took.begin() + count / 2);
  std::printf("%.9f\n", took[static_cast<std::size_t>(count / 2)]);
}

}  // namespace

int main(int count, char** words) {
  const std::string what = count > 3 ? words[1] : "";
  if (what == "serve") {
    serve(words[2], words[3]);
    return EXIT_SUCCESS;
  }
  if (what != "fetch") {
    std::fprintf(stderr, "usage: tensorpipe_exchange serve|fetch TRANSPORT ADDRESS:PORT [BYTES COUNT]\n");
    return 2;
  }
  const auto context = context_of(words[2]);
  const auto pipe = context->connect(std::string(words[2]) + "://" + words[3]);
  bool right = true;
  if (count == 6) {
    measure(*pipe, words[4], std::atoi(words[5]));
  } else {
    right = exchange(*pipe);
    std::printf("20 rounds of 4 tensors there and back over %s: %s\n", words[2], right ? "right" : "WRONG");
  }
  std::vector<Bytes> none;
  send(*pipe, "end", none);
  Received ended;
  receive(*pipe, ended);
  pipe->close();
  return right ? EXIT_SUCCESS : EXIT_FAILURE;
}
