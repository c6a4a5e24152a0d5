// Programs that load the library as a plug-in and unload it (as Open MPI's components do).
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <infiniband/verbs.h>

namespace weir::verbs_test {
namespace {

template <class Function>
Function* function(void* library, const char* name) {
  return reinterpret_cast<Function*>(::dlsym(library, name));
}

// Its threads go on, and run the library's code.
TEST(Unloading, leaves_the_code_that_its_threads_run) {
  void* const library = ::dlopen(IBVERBS, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << ::dlerror();
  int count = 0;
  ibv_device** const devices = function<ibv_device**(int*)>(library, "ibv_get_device_list")(&count);
  ASSERT_GT(count, 0);
  ibv_context* const context = function<ibv_context*(ibv_device*)>(library, "ibv_open_device")(devices[0]);
  ASSERT_NE(context, nullptr);
  EXPECT_EQ(function<int(ibv_context*)>(library, "ibv_close_device")(context), 0);
  function<void(ibv_device**)>(library, "ibv_free_device_list")(devices);
  EXPECT_EQ(::dlclose(library), 0);
  EXPECT_NE(::dlopen(IBVERBS, RTLD_NOW | RTLD_NOLOAD), nullptr) << "it was unmapped";
}

}  // namespace
}  // namespace weir::verbs_test
