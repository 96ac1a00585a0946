"""A federation across machines: the same client update and the same methods, over NVFlare's network.

A site runs the method itself on its own samples (`site_run.py`); only federated rounds cross the network. The coordinator runs
the rounds (`coordinator.py`). Only `network.py` and `connection.py` use NVFlare.
"""
