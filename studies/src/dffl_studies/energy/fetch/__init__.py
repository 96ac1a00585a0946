"""Prices and weather from the web, kept in a cache that resumes downloads, and made into a panel.

Prices come from EIA (no key, seven markets) or from PJM's Data Miner (the user's key), weather from Open-Meteo, and a finished
panel from the paper's authors. Without a network, the error says which file to put where.
"""
