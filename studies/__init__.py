"""Makes `studies.tests` a package of its own, next to `tests`. What is installed is in `studies/src`."""
