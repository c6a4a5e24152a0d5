"""Tells a forked child from its parent without os.getpid(): a system call takes as long as all of a small fetch's Python."""
import os

generation = 0  # number of forks between the program's first process and this one


def _in_child() -> None:
    global generation
    generation += 1


os.register_at_fork(after_in_child=_in_child)
