// A program that is built with AddressSanitizer, and opens what it finds.
#include <infiniband/verbs.h>

int main() {
  int count = 0;
  ibv_device** const devices = ibv_get_device_list(&count);
  if (devices == nullptr || count == 0) return 1;
  ibv_context* const device = ibv_open_device(devices[0]);
  ibv_free_device_list(devices);
  return device != nullptr && ibv_close_device(device) == 0 ? 0 : 1;
}
