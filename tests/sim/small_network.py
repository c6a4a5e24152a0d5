"""The network of the program tests: two leaves under one spine, as the beginning of a scenario."""


def leaf_spine(hosts_per_leaf):
    return f"""
[leaf_spine]
spines = 1
leaves = 2
hosts_per_leaf = {hosts_per_leaf}
host_speed = "100G"
host_cable = "3m"
spine_speed = "100G"
spine_cable = "40m"
leaf_model = "generic-32m"
spine_model = "generic-32m"
"""
