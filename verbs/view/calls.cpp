// The C library's calls that take a path: each finds the path's place and calls the real one.
//
// These are entry points of other people's programs: signatures are the C library's (glibc 2.36, and the
// older __xstat family that programs linked before 2.33 call), errno is the real call's.
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <glob.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "verbs/view/live_counters.hpp"
#include "verbs/view/paths.hpp"
#include "verbs/view/tree.hpp"

using weir::verbs::SeenPath;

namespace {

template <class Call>
Call* real(const char* name) {
  return reinterpret_cast<Call*>(::dlsym(RTLD_NEXT, name));
}

bool has_mode(int flags) { return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE; }

// A file was opened by that name.
int opened(int fd, const char* path, int flags) {
  if (path != nullptr && (flags & O_ACCMODE) == O_RDONLY) weir::verbs::opened_for_reading(fd, path);
  return fd;
}

[[gnu::destructor]] void at_exit() { weir::verbs::remove_view_tree(); }

}  // namespace

// The real function, looked up once.
#define WEIR_REAL(type, name) static auto* const call = real<type>(#name)
// open's last argument, if it has one.
#define WEIR_MODE(mode, flags)        \
  mode_t mode = 0;                    \
  if (has_mode(flags)) {              \
    va_list arguments;                \
    va_start(arguments, flags);       \
    mode = va_arg(arguments, mode_t); \
    va_end(arguments);                \
  }                                   \
  static_assert(true)

extern "C" {

int open(const char* path, int flags, ...) {
  WEIR_REAL(int(const char*, int, mode_t), open);
  WEIR_MODE(mode, flags);
  return opened(call(SeenPath(path), flags, mode), path, flags);
}
int openat(int directory, const char* path, int flags, ...) {
  WEIR_REAL(int(int, const char*, int, mode_t), openat);
  WEIR_MODE(mode, flags);
  return opened(call(directory, SeenPath(directory, path), flags, mode), path, flags);
}
int __open_2(const char* path, int flags) {
  WEIR_REAL(int(const char*, int), __open_2);
  return opened(call(SeenPath(path), flags), path, flags);
}
int __openat_2(int directory, const char* path, int flags) {
  WEIR_REAL(int(int, const char*, int), __openat_2);
  return opened(call(directory, SeenPath(directory, path), flags), path, flags);
}
FILE* fopen(const char* path, const char* mode) {
  WEIR_REAL(FILE * (const char*, const char*), fopen);
  FILE* const file = call(SeenPath(path), mode);
  if (file != nullptr && *mode == 'r') weir::verbs::opened_for_reading(::fileno(file), path);
  return file;
}

// What is read from the beginning again is read anew, as in sysfs.
ssize_t read(int fd, void* buffer, size_t size) {
  WEIR_REAL(ssize_t(int, void*, size_t), read);
  weir::verbs::about_to_read(fd, std::nullopt);
  return call(fd, buffer, size);
}
ssize_t __read_chk(int fd, void* buffer, size_t size, size_t limit) {
  WEIR_REAL(ssize_t(int, void*, size_t, size_t), __read_chk);
  weir::verbs::about_to_read(fd, std::nullopt);
  return call(fd, buffer, size, limit);
}
ssize_t pread(int fd, void* buffer, size_t size, off_t offset) {
  WEIR_REAL(ssize_t(int, void*, size_t, off_t), pread);
  weir::verbs::about_to_read(fd, offset);
  return call(fd, buffer, size, offset);
}
ssize_t __pread_chk(int fd, void* buffer, size_t size, off_t offset, size_t limit) {
  WEIR_REAL(ssize_t(int, void*, size_t, off_t, size_t), __pread_chk);
  weir::verbs::about_to_read(fd, offset);
  return call(fd, buffer, size, offset, limit);
}

DIR* opendir(const char* path) {
  WEIR_REAL(DIR * (const char*), opendir);
  return call(SeenPath(path));
}
int scandir(const char* path, struct dirent*** list, int (*filter)(const struct dirent*),
            int (*order)(const struct dirent**, const struct dirent**)) {
  WEIR_REAL(decltype(::scandir), scandir);
  return call(SeenPath(path), list, filter, order);
}
int stat(const char* path, struct stat* out) {
  WEIR_REAL(int(const char*, struct stat*), stat);
  return call(SeenPath(path), out);
}
int lstat(const char* path, struct stat* out) {
  WEIR_REAL(int(const char*, struct stat*), lstat);
  return call(SeenPath(path), out);
}
int fstatat(int directory, const char* path, struct stat* out, int flags) {
  WEIR_REAL(int(int, const char*, struct stat*, int), fstatat);
  return call(directory, SeenPath(directory, path), out, flags);
}
int __xstat(int version, const char* path, struct stat* out) {
  WEIR_REAL(int(int, const char*, struct stat*), __xstat);
  return call(version, SeenPath(path), out);
}
int __lxstat(int version, const char* path, struct stat* out) {
  WEIR_REAL(int(int, const char*, struct stat*), __lxstat);
  return call(version, SeenPath(path), out);
}
int __fxstatat(int version, int directory, const char* path, struct stat* out, int flags) {
  WEIR_REAL(int(int, int, const char*, struct stat*, int), __fxstatat);
  return call(version, directory, SeenPath(directory, path), out, flags);
}
int statx(int directory, const char* path, int flags, unsigned mask, struct statx* out) {
  WEIR_REAL(int(int, const char*, int, unsigned, struct statx*), statx);
  return call(directory, SeenPath(directory, path), flags, mask, out);
}
int access(const char* path, int mode) {
  WEIR_REAL(int(const char*, int), access);
  return call(SeenPath(path), mode);
}
int euidaccess(const char* path, int mode) {
  WEIR_REAL(int(const char*, int), euidaccess);
  return call(SeenPath(path), mode);
}
int eaccess(const char* path, int mode) {
  WEIR_REAL(int(const char*, int), eaccess);
  return call(SeenPath(path), mode);
}
int faccessat(int directory, const char* path, int mode, int flags) {
  WEIR_REAL(int(int, const char*, int, int), faccessat);
  return call(directory, SeenPath(directory, path), mode, flags);
}
ssize_t readlink(const char* path, char* out, size_t size) {
  WEIR_REAL(ssize_t(const char*, char*, size_t), readlink);
  return call(SeenPath(path), out, size);
}
ssize_t readlinkat(int directory, const char* path, char* out, size_t size) {
  WEIR_REAL(ssize_t(int, const char*, char*, size_t), readlinkat);
  return call(directory, SeenPath(directory, path), out, size);
}
ssize_t __readlink_chk(const char* path, char* out, size_t size, size_t limit) {
  WEIR_REAL(ssize_t(const char*, char*, size_t, size_t), __readlink_chk);
  return call(SeenPath(path), out, size, limit);
}
int chdir(const char* path) {
  WEIR_REAL(int(const char*), chdir);
  return call(SeenPath(path));
}

ssize_t getxattr(const char* path, const char* name, void* value, size_t size) {
  WEIR_REAL(ssize_t(const char*, const char*, void*, size_t), getxattr);
  return call(SeenPath(path), name, value, size);
}
ssize_t lgetxattr(const char* path, const char* name, void* value, size_t size) {
  WEIR_REAL(ssize_t(const char*, const char*, void*, size_t), lgetxattr);
  return call(SeenPath(path), name, value, size);
}
ssize_t listxattr(const char* path, char* list, size_t size) {
  WEIR_REAL(ssize_t(const char*, char*, size_t), listxattr);
  return call(SeenPath(path), list, size);
}
ssize_t llistxattr(const char* path, char* list, size_t size) {
  WEIR_REAL(ssize_t(const char*, char*, size_t), llistxattr);
  return call(SeenPath(path), list, size);
}

// A path's real place is in the tree; the program knows it by its other name.
char* realpath(const char* path, char* out) {
  WEIR_REAL(char*(const char*, char*), realpath);
  char* const found = call(SeenPath(path), out);
  if (found != nullptr) weir::verbs::show_as_known(found);
  return found;
}
char* __realpath_chk(const char* path, char* out, size_t limit) {
  WEIR_REAL(char*(const char*, char*, size_t), __realpath_chk);
  char* const found = call(SeenPath(path), out, limit);
  if (found != nullptr) weir::verbs::show_as_known(found);
  return found;
}
char* canonicalize_file_name(const char* path) { return realpath(path, nullptr); }

int glob(const char* pattern, int flags, int (*on_error)(const char*, int), glob_t* found) {
  WEIR_REAL(decltype(::glob), glob);
  const SeenPath seen(pattern);
  const std::size_t before = (flags & GLOB_APPEND) != 0 ? found->gl_pathc : 0;
  const int result = call(seen, flags, on_error, found);
  if (result == 0 && seen.ours())
    for (std::size_t i = before; i < found->gl_pathc; ++i) weir::verbs::show_as_known(found->gl_pathv[i]);
  return result;
}

// Ends that run no destructors: shells leave by _exit, and a program that becomes another has no end of its
// own. A forked child on its way to exec does not own the tree, and leaves it.
void _exit(int status) {
  WEIR_REAL(void(int), _exit);
  weir::verbs::remove_view_tree();
  call(status);
  __builtin_unreachable();
}
void _Exit(int status) { _exit(status); }

int execve(const char* path, char* const arguments[], char* const environment[]) {
  WEIR_REAL(int(const char*, char* const[], char* const[]), execve);
  weir::verbs::remove_view_tree();
  return call(path, arguments, environment);
}
int execv(const char* path, char* const arguments[]) {
  WEIR_REAL(int(const char*, char* const[]), execv);
  weir::verbs::remove_view_tree();
  return call(path, arguments);
}
int execvp(const char* file, char* const arguments[]) {
  WEIR_REAL(int(const char*, char* const[]), execvp);
  weir::verbs::remove_view_tree();
  return call(file, arguments);
}
int execvpe(const char* file, char* const arguments[], char* const environment[]) {
  WEIR_REAL(int(const char*, char* const[], char* const[]), execvpe);
  weir::verbs::remove_view_tree();
  return call(file, arguments, environment);
}

// On this ABI off_t has 64 bits, and each pair of names is one function in the C library too.
static_assert(sizeof(off_t) == sizeof(off64_t) && sizeof(struct stat) == sizeof(struct stat64) &&
              sizeof(struct dirent) == sizeof(struct dirent64));
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wattribute-alias"
int open64(const char*, int, ...) __attribute__((alias("open")));
int openat64(int, const char*, int, ...) __attribute__((alias("openat")));
int __open64_2(const char*, int) __attribute__((alias("__open_2")));
int __openat64_2(int, const char*, int) __attribute__((alias("__openat_2")));
FILE* fopen64(const char*, const char*) __attribute__((alias("fopen")));
ssize_t pread64(int, void*, size_t, off64_t) __attribute__((alias("pread")));
ssize_t __pread64_chk(int, void*, size_t, off64_t, size_t) __attribute__((alias("__pread_chk")));
int scandir64(const char*, struct dirent64***, int (*)(const struct dirent64*),
              int (*)(const struct dirent64**, const struct dirent64**)) __attribute__((alias("scandir")));
int stat64(const char*, struct stat64*) noexcept __attribute__((alias("stat")));
int lstat64(const char*, struct stat64*) noexcept __attribute__((alias("lstat")));
int fstatat64(int, const char*, struct stat64*, int) noexcept __attribute__((alias("fstatat")));
int __xstat64(int, const char*, struct stat64*) __attribute__((alias("__xstat")));
int __lxstat64(int, const char*, struct stat64*) __attribute__((alias("__lxstat")));
int __fxstatat64(int, int, const char*, struct stat64*, int) __attribute__((alias("__fxstatat")));
#pragma GCC diagnostic pop

}  // extern "C"
