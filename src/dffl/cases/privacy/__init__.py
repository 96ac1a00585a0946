"""`dffl privacy-study`: what privacy and sites that lie cost, in regret."""
