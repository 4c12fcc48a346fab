"""Many questions from a file: rows in, one line of figures and one report each out; what was done is not done again."""
