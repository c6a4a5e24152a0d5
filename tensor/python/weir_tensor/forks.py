"""Which of a program's processes this is, without os.getpid(): a system call takes as long as a small fetch's Python."""
import os

generation = 0  # forks between the program's first process and this one


def _in_child() -> None:
    global generation
    generation += 1


os.register_at_fork(after_in_child=_in_child)
