"""dffl's integer models beside PyEPO's, measured and checked in one run: ``python -m benchmarks.integer``.

Every competitor runs in a process of its own, because OR-Tools and highspy cannot be in one process, and gets the same arrays
in one file. It hands back predicted costs; one judge, which shares no code with any competitor, turns them into regret.
"""
