// A program that carries its libraries, for `weir run` to refuse.
int main() { return 0; }
