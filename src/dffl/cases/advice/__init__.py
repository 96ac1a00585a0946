"""Does the advice work? It is judged on federations in which the truth is known."""
