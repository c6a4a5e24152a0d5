// Stands in for another libibverbs than Weir's.
extern "C" [[gnu::visibility("default")]] int ibv_fork_init() { return 0; }
