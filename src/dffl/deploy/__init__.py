"""A federation across machines: the same client update and the same methods, carried by NVFlare's network.

A site runs the method itself on its own samples (`site_run.py`); only federated rounds cross the network. The coordinator holds
the rounds (`coordinator.py`), and `network.py` is the one module that knows NVFlare.
"""
