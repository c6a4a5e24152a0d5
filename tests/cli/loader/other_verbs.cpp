// Stands in for a libibverbs that is not Weir's.
extern "C" [[gnu::visibility("default")]] int ibv_fork_init() { return 0; }
