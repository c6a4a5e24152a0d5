#include "tests/nccl/any_net.hpp"

#include <dlfcn.h>

#include <array>
#include <cstdarg>
#include <cstdio>
#include <mutex>
#include <stdexcept>
#include <type_traits>

#include "tests/nccl/versions.hpp"

namespace weir::nccl::testing_support {
namespace {

struct CloseLibrary {
  void operator()(void* library) const { dlclose(library); }
};
using Library = std::unique_ptr<void, CloseLibrary>;

template <class Net, class Properties, int number>
class OneVersion final : public AnyNet {
 public:
  OneVersion(Library library, const Net& net) : library_(std::move(library)), net_(net) {}

  const char* name() const override { return net_.name; }
  int version() const override { return number; }
  bool has_finalize() const override { return number >= 11; }

  Status init(LogFunction log) override {
    if constexpr (number >= 11) {
      using Config = std::conditional_t<number == 11, v11::CommConfig, v12::CommConfig>;
      Config config{-1};
      return net_.init(&context_, 0x1234, &config, log, nullptr);
    } else if constexpr (number == 10) {
      return net_.init(log, nullptr);
    } else {
      return net_.init(log);
    }
  }
  Status finalize() override {
    if constexpr (number >= 11) return net_.finalize(context_);
    return Status::success;
  }
  Status devices(int* count) override { return net_.devices(count); }
  Status properties(int device, AnyProperties& to) override {
    Properties from;
    if (const Status status = net_.get_properties(device, &from); status != Status::success) return status;
    to = {};
    to.name = from.name;
    to.has_pci_path = from.pci_path != nullptr;
    to.pci_path = from.pci_path != nullptr ? from.pci_path : "";
    to.guid = from.guid;
    to.pointer_support = from.pointer_support;
    to.registration_is_global = from.registration_is_global;
    to.speed_mbps = from.speed_mbps;
    to.port = from.port;
    to.max_comms = from.max_comms;
    to.max_receives = from.max_receives;
    to.device_type = from.device_type;
    to.device_version = from.device_version;
    to.merged_first = device;
    if constexpr (number >= 9) {
      to.force_flush = from.force_flush;
      to.merged_count = from.merged.count;
      to.merged_first = from.merged.devices[0];
      to.max_p2p_bytes = from.max_p2p_bytes;
    }
    if constexpr (number >= 12) {
      to.rail = from.rail;
      to.plane = from.plane;
    }
    return Status::success;
  }
  Status listen(int device, void* handle, void** comm) override {
    if constexpr (number >= 11)
      return net_.listen(context_, device, handle, comm);
    else
      return net_.listen(device, handle, comm);
  }
  Status connect(int device, void* handle, void** comm) override {
    if constexpr (number >= 11) {
      return net_.connect(context_, device, handle, comm, nullptr);
    } else if constexpr (number == 10) {
      v10::CommConfig config{-1};
      return net_.connect(device, &config, handle, comm, nullptr);
    } else {
      return net_.connect(device, handle, comm, nullptr);
    }
  }
  Status accept(void* listen_comm, void** comm) override { return net_.accept(listen_comm, comm, nullptr); }
  Status reg_mr(void* comm, void* data, std::size_t bytes, void** region) override {
    return reg_mr_of_type(comm, data, bytes, pointer_host, region);
  }
  Status reg_mr_of_type(void* comm, void* data, std::size_t bytes, int type, void** region) override {
    return net_.reg_mr(comm, data, bytes, type, region);
  }
  Status dereg_mr(void* comm, void* region) override { return net_.dereg_mr(comm, region); }
  Status isend(void* comm, void* data, std::size_t bytes, int tag, void* region, void** request) override {
    if constexpr (number >= 10)
      return net_.isend(comm, data, bytes, tag, region, nullptr, request);
    else if constexpr (number == 9)
      return net_.isend(comm, data, bytes, tag, region, request);
    else
      return net_.isend(comm, data, static_cast<int>(bytes), tag, region, request);
  }
  Status irecv(void* comm, int count, void** data, std::size_t* bytes, int* tags, void** regions,
               void** request) override {
    if constexpr (number >= 10) {
      return net_.irecv(comm, count, data, bytes, tags, regions, nullptr, request);
    } else if constexpr (number == 9) {
      return net_.irecv(comm, count, data, bytes, tags, regions, request);
    } else {
      std::array<int, 64> sizes{};
      for (int i = 0; i < count && i < 64; ++i)
        sizes[static_cast<std::size_t>(i)] = static_cast<int>(bytes[i]);
      return net_.irecv(comm, count, data, sizes.data(), tags, regions, request);
    }
  }
  Status iflush(void* comm, int count, void** data, int* bytes, void** regions, void** request) override {
    return net_.iflush(comm, count, data, bytes, regions, request);
  }
  Status test(void* request, int* done, int* bytes) override { return net_.test(request, done, bytes); }
  Status close_send(void* comm) override { return net_.close_send(comm); }
  Status close_receive(void* comm) override { return net_.close_receive(comm); }
  Status close_listen(void* comm) override { return net_.close_listen(comm); }

 private:
  Library library_;
  Net net_;
  void* context_ = nullptr;
};

template <class Net, class Properties, int number>
std::unique_ptr<AnyNet> find(Library library) {
  const std::string symbol = "ncclNetPlugin_v" + std::to_string(number);
  const auto* net = static_cast<const Net*>(dlsym(library.get(), symbol.c_str()));
  if (net == nullptr) throw std::runtime_error("the library has no " + symbol);
  return std::make_unique<OneVersion<Net, Properties, number>>(std::move(library), *net);
}

std::mutex log_mutex;
std::string log_text;

void log(LogLevel, unsigned long, const char*, int, const char* format, ...) {
  std::array<char, 4096> line{};
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(line.data(), line.size(), format, arguments);
  va_end(arguments);
  const std::lock_guard lock(log_mutex);
  log_text += std::string(line.data()) + "\n";
}

}  // namespace

std::unique_ptr<AnyNet> open_net(const std::string& path, int version) {
  Library library(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL));
  if (!library) throw std::runtime_error(dlerror());
  switch (version) {
    case 8:
      return find<v8::Net, v8::Properties, 8>(std::move(library));
    case 9:
      return find<v9::Net, v9::Properties, 9>(std::move(library));
    case 10:
      return find<v10::Net, v10::Properties, 10>(std::move(library));
    case 11:
      return find<v11::Net, v11::Properties, 11>(std::move(library));
    case 12:
      return find<v12::Net, v12::Properties, 12>(std::move(library));
    default:
      throw std::runtime_error("no version " + std::to_string(version));
  }
}

LogFunction keep_log() { return log; }

std::string kept_log() {
  const std::lock_guard lock(log_mutex);
  return log_text;
}

}  // namespace weir::nccl::testing_support
