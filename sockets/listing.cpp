#include "sockets/listing.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>

#include "link/default_directory.hpp"
#include "sockets/layout.hpp"
#include "sockets/reason.hpp"

namespace weir::sockets {
namespace {

// As Table::alive(), for who does not take part.
bool lives(int file, const Layout& layout, const Side& end) {
  struct flock lock{};
  const auto process = end.process.load();
  if (process >= max_processes || layout.generations[process].load() != end.generation.load()) return false;
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = process;
  lock.l_len = 1;
  return ::fcntl(file, F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

std::string text_of(const Key::End& end) {
  char text[INET6_ADDRSTRLEN] = "";
  const bool v4 =
      std::all_of(end.address.begin(), end.address.begin() + 10, [](auto byte) { return byte == 0; }) &&
      end.address[10] == 0xff && end.address[11] == 0xff;
  ::inet_ntop(v4 ? AF_INET : AF_INET6, end.address.data() + (v4 ? 12 : 0), text, sizeof text);
  const std::string port = ":" + std::to_string(end.port);
  return v4 ? text + port : "[" + std::string(text) + "]" + port;
}

ListedEnd describe(const Entry& entry, unsigned side) {
  const Side& mine = entry.sides[side];
  const Side& peer = entry.sides[1 - side];
  ListedEnd end;
  end.local = text_of(side == 0 ? entry.key.low : entry.key.high);
  end.peer = text_of(side == 0 ? entry.key.high : entry.key.low);
  const auto program = mine.program;  // copied once: another process may write it meanwhile
  for (const char letter : program) {
    if (letter == '\0') break;
    end.program += std::isprint(static_cast<unsigned char>(letter)) != 0 ? letter : '?';
  }
  end.pid = mine.pid.load();
  end.sends_by_rdma = (mine.sender.changes.load() & 1) != 0;
  end.receives_by_rdma = (peer.sender.changes.load() & 1) != 0;
  end.sent_by_rdma = mine.by_ring.load();
  const auto why = mine.why_not.load(), peers = peer.why_not.load();
  const auto stage = static_cast<Stage>(peer.stage.load());
  if (why != 0)
    end.why_not = text(static_cast<Reason>(why));
  else if (peers != 0 && stage != Stage::absent && stage != Stage::gone)
    end.why_not = std::string("has a peer whose end ") + text(static_cast<Reason>(peers));
  return end;
}

}  // namespace

std::string runtime_directory(const char* told) { return link::default_runtime_directory(told); }

std::expected<std::vector<ListedEnd>, std::string> list_ends(const std::string& runtime_directory) {
  std::vector<ListedEnd> ends;
  const std::string path = Layout::table_path(runtime_directory + "/lasting-sockets");
  const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (file < 0 && errno == ENOENT) return ends;
  struct stat info{};
  void* at = MAP_FAILED;
  if (file >= 0 && ::fstat(file, &info) == 0 && info.st_size >= static_cast<off_t>(sizeof(Layout)))
    at = ::mmap(nullptr, sizeof(Layout), PROT_READ, MAP_SHARED, file, 0);
  if (at == MAP_FAILED) {
    const std::string why = std::strerror(errno);
    if (file >= 0) ::close(file);
    return std::unexpected(path + " cannot be read (" + why +
                           "); is it another user's? WEIR_RUNTIME_DIR names the folder");
  }
  const auto& layout = *static_cast<const Layout*>(at);
  if (layout.magic.load() == Layout::the_magic) {
    for (const Entry& entry : layout.entries) {
      if (entry.used.load() == 0) continue;
      for (unsigned side = 0; side < entry.sides.size(); ++side) {
        const auto stage = static_cast<Stage>(entry.sides[side].stage.load());
        if (stage == Stage::absent || stage == Stage::gone || entry.sides[side].mirror.load() != 0 ||
            !lives(file, layout, entry.sides[side]))
          continue;
        ends.push_back(describe(entry, side));
      }
    }
  }
  ::munmap(at, sizeof(Layout));
  ::close(file);
  return ends;
}

}  // namespace weir::sockets
