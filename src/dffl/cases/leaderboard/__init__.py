"""`dffl leaderboard`: all methods and losses, each with the same small search, judged on data that the search has not seen."""
