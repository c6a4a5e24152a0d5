#include "verbs/monitor/port_ledger.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <span>

#include "verbs/monitor/counters_seen.hpp"

namespace weir::verbs {
namespace {

// "WEIRPRT" and the size of an account: a file of another version is started afresh.
constexpr std::uint64_t magic = 0x57454952'50525400 ^ sizeof(CountersSeen);

struct Account {
  std::uint64_t identity = 0;  // 0: unused
  CountersSeen most{};
};

}  // namespace

// A sparse file: only the pages of used accounts exist.
struct PortLedger::File {
  std::uint64_t magic = verbs::magic;
  std::uint64_t accounts_opened = 0;  // ever; the next account goes to this number modulo max_accounts
  CountersSeen closed{};              // sum of the accounts that were replaced
  std::array<Account, max_accounts> accounts{};
};

std::optional<PortLedger> PortLedger::open(const std::string& directory, Missing missing) {
  const link::UniqueFd at(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!at) return std::nullopt;
  if (missing == Missing::leave_it && ::faccessat(at.get(), file_name, R_OK | W_OK, 0) != 0)
    return std::nullopt;
  auto lock = link::FileLock::take(at.get(), file_name, directory);
  if (!lock) return std::nullopt;
  const link::UniqueFd fd(::openat(at.get(), file_name, O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  struct stat about{};
  if (!fd || ::fstat(fd.get(), &about) != 0) return std::nullopt;
  std::uint64_t begun_as = 0;
  const bool known = ::pread(fd.get(), &begun_as, sizeof begun_as, 0) == sizeof begun_as &&
                     begun_as == magic && static_cast<std::size_t>(about.st_size) == sizeof(File);
  if (!known && (::ftruncate(fd.get(), 0) != 0 || ::ftruncate(fd.get(), sizeof(File)) != 0))
    return std::nullopt;
  auto mapping = link::Mapping::of_file(fd.get(), sizeof(File), link::Mapping::Rights::read_write);
  if (!mapping) return std::nullopt;
  PortLedger ledger(std::move(*lock), std::move(*mapping));
  ledger.file().magic = magic;
  return ledger;
}

PortLedger::File& PortLedger::file() const { return *reinterpret_cast<File*>(mapping_.data()); }

void PortLedger::report(std::uint64_t identity, CountersSeen seen) {
  File& all = file();
  const std::size_t used = std::min<std::size_t>(all.accounts_opened, max_accounts);
  const auto known = std::ranges::find(std::span(all.accounts).first(used), identity, &Account::identity);
  Account* account = used != 0 && known != std::span(all.accounts).first(used).end() ? &*known : nullptr;
  if (account == nullptr) {
    account = &all.accounts[all.accounts_opened++ % max_accounts];
    add(all.closed, account->most);
    *account = {.identity = identity};
  }
  std::ranges::transform(words_of(account->most), words_of(seen), words_of(account->most).begin(),
                         [](std::uint64_t a, std::uint64_t b) { return std::max(a, b); });
}

CountersSeen PortLedger::total() const {
  const File& all = file();
  CountersSeen sum = all.closed;
  const std::size_t used = std::min<std::size_t>(all.accounts_opened, max_accounts);
  for (const Account& account : std::span(all.accounts).first(used)) add(sum, account.most);
  return sum;
}

}  // namespace weir::verbs
