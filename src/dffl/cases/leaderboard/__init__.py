"""`dffl leaderboard`: all methods and all losses, each with the same small search, judged on data that the search has not seen."""
