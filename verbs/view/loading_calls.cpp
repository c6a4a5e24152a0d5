// dlopen of libibverbs or librdmacm by another name than their sonames: a program that loads "libibverbs.so",
// or the system's by its path, gets Weir's, which `weir run` has preloaded and the dynamic linker knows by
// soname.
//
// The C library looks at who called it, for the caller's RUNPATH, $ORIGIN and namespace. So the last call
// here has to be a jump, which leaves the caller's return address where it was.
#include <dlfcn.h>

#include <string_view>

namespace {

constexpr struct {
  std::string_view library;
  const char* soname;
} replaced[] = {{"libibverbs.so", "libibverbs.so.1"}, {"librdmacm.so", "librdmacm.so.1"}};

const char* name_to_load(const char* file) noexcept {
  if (file == nullptr) return file;
  std::string_view name(file);
  name.remove_prefix(name.rfind('/') + 1);
  for (const auto& [library, soname] : replaced) {
    // libibverbs.so, libibverbs.so.1, libibverbs.so.1.14.44.0; a later major version would be another ABI.
    if (!name.starts_with(library)) continue;
    const auto version = name.substr(library.size());
    if (version.empty() || version == ".1" || version.starts_with(".1.")) return soname;
  }
  return file;
}

// The C library's own, looked up once.
template <class Call>
Call* next(const char* name) noexcept {
  return reinterpret_cast<Call*>(::dlsym(RTLD_NEXT, name));
}
using Open = void*(const char*, int) noexcept;
using OpenIn = void*(Lmid_t, const char*, int) noexcept;
Open* next_dlopen() noexcept {
  static Open* const call = next<Open>("dlopen");
  return call;
}
OpenIn* next_dlmopen() noexcept {
  static OpenIn* const call = next<OpenIn>("dlmopen");
  return call;
}

}  // namespace

#if defined(__clang__)  // which jumps in optimised builds only
#define WEIR_LAST_CALL_IS_A_JUMP
#else
#define WEIR_LAST_CALL_IS_A_JUMP [[gnu::optimize("O2", "optimize-sibling-calls")]]
#endif

extern "C" {

WEIR_LAST_CALL_IS_A_JUMP void* dlopen(const char* file, int mode) noexcept {
  return next_dlopen()(name_to_load(file), mode);
}

// Another namespace has loaded nothing yet, and finds libraries as the program's own does.
WEIR_LAST_CALL_IS_A_JUMP void* dlmopen(Lmid_t space, const char* file, int mode) noexcept {
  return next_dlmopen()(space, name_to_load(file), mode);
}

}  // extern "C"
