// Where the processes of one user meet, if nobody says otherwise. In a header, because a library that brings
// no link along looks there too (verbs/view).
//
// Anybody may make a folder in /dev/shm, also under the name that we would take. One that is another user's
// is of no use to us and does not go away, so all our processes go to the folder that the system keeps for
// this user alone. An odd answer is found by SlotDirectory::open(), which checks what it is given.
#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include <string>

namespace weir::link {

// `usual`, or, where that is not `user`'s and `own` is, a folder in `own`.
inline std::string usable_directory(const std::string& usual, const std::string& own, uid_t user) {
  struct stat taken{}, kept{};
  const bool anothers = ::lstat(usual.c_str(), &taken) == 0 && taken.st_uid != user;
  const bool has_own = ::lstat(own.c_str(), &kept) == 0 && S_ISDIR(kept.st_mode) && kept.st_uid == user &&
                       (kept.st_mode & (S_IWGRP | S_IWOTH)) == 0;
  return anothers && has_own ? own + "/weir" : usual;
}

// `told`: what WEIR_RUNTIME_DIR says; null or empty: nothing.
inline std::string default_runtime_directory(const char* told) {
  if (told != nullptr && *told != '\0') return told;
  const std::string user = std::to_string(::geteuid());
  return usable_directory("/dev/shm/weir-" + user, "/run/user/" + user, ::geteuid());
}

}  // namespace weir::link
