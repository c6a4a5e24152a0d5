// A statically linked program that `weir run` must refuse.
int main() { return 0; }
