"""Stand-alone measurements of other packages on the work `dffl` is measured on.

Every module is run in a process of its own (`python -m benchmarks.peers.pyepo --case glop`) and imports neither JAX nor
the rest of `dffl`: the solvers' shared libraries clash in one process, and a peer must not pay for our imports.
"""
