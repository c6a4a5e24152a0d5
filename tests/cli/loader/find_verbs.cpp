// Prints which libibverbs it uses. With the words "dlopen NAME" it loads that library; with "plugin" it loads
// libfind_verbs_plugin.so, which only its RUNPATH reaches.
#include <dlfcn.h>

#include <cstdio>
#include <cstring>

extern "C" int ibv_fork_init();

int main(int count, char** words) {
  auto* call = reinterpret_cast<void*>(&ibv_fork_init);
  if (count == 2 && std::strcmp(words[1], "plugin") == 0) {
    void* const plugin = dlopen("libfind_verbs_plugin.so", RTLD_NOW);
    std::puts(plugin != nullptr ? "plugin found" : dlerror());
    return plugin == nullptr;
  }
  if (count == 3) {
    void* const library = dlopen(words[2], RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return std::puts(dlerror()), 1;
    call = dlsym(library, "ibv_fork_init");
  }
  Dl_info info{};
  if (dladdr(call, &info) == 0) return 1;
  std::puts(info.dli_fname);
}
