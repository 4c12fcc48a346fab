"""Local folders as a source: indexed once, kept up to date, searched by meaning and words.

Import from the modules: a process that only checks a folder's path does not load the index.
"""
