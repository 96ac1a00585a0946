"""Case studies: each with its data, study, tables, figures and command. Nothing of the library imports them."""
