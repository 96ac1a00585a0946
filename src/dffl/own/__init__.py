"""Users' own data: from a federation's file to a model, its evaluation, and decisions."""
