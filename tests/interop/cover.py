"""Which cases `make test` runs: enough that every pair of (verb, kind, option, path) that any short case has is run.

A fault shows with one value or with two together far more often than with three. `make interop` and `make test-all` run every
case. A case that fits no scheme is a program of its own, and always chosen.
"""
import dataclasses
import itertools
import re

ENVIRONMENTS = ("between_hosts", "packets", "two_users", "no_process_vm", "seccomp", "seccomp_of_the_server", "pid_namespaces",
                "pid_namespace_of_the_server", "pid_namespaces_without_proc", "nobody", "valgrind")
FAMILIES = ("ipv6", "link_local")  # addresses, named behind between_hosts
MEASURING = re.compile(r"(ibv?)_(\w+?)_(lat|bw|pingpong)")


def factors(name):
    """The case's value of each factor. Names say them: between_hosts.ipv6.ib_send_lat.events."""
    words, path = name.split("."), []
    while words[0] in ENVIRONMENTS or path and words[0] in FAMILIES:
        path.append(words.pop(0))
    program, option = words[0], ".".join(words[1:])
    measuring = MEASURING.fullmatch(program)
    if measuring:
        # all_sizes runs each size_N, too.
        option = "all_sizes" if option.startswith("size_") else option
        return {"path": ".".join(path), "verb": measuring[1] + measuring[2], "kind": measuring[3], "option": option}
    if program == "ucx":  # lat and bw of a test call the same operations, and so do the atomic ones
        return {"path": ".".join(path), "verb": program, "kind": words[1],
                "option": re.sub(r"ucp_(add|fadd|swap|cswap)", "atomic", re.sub(r"_(lat|bw)$", "", words[2]))}
    if program == "open_mpi":
        return {"path": ".".join(path), "verb": program, "kind": words[1], "option": words[2]}
    return {"path": ".".join(path), "verb": ".".join(words)}


def pairs(name):
    return set(itertools.combinations(sorted(factors(name).items()), 2))


def cover(names):
    """Names that together have every pair that `names` have: each time the one with the most pairs that are still missing;
    of equals the first."""
    pairs_of = {name: pairs(name) for name in names}
    missing, chosen = set().union(*pairs_of.values()), set()
    while missing:
        best = max(names, key=lambda name: len(pairs_of[name] & missing))
        chosen.add(best)
        missing -= pairs_of[best]
    return chosen


def with_the_rest_slow(cases):
    """The cases, those that the cover needs not with the label slow."""
    chosen = cover([case.name for case in cases if case.label != "slow"])
    return [case if case.name in chosen or case.label == "slow" else dataclasses.replace(case, label="slow") for case in cases]
