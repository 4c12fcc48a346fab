"""What is remembered between sessions, so that it is not asked, fetched or computed again.

Reports (`cache`), web searches (`searches`), pages (`pages`) and embeddings (`vectors`), each for a time of its own
(`CacheSettings`). All but the embeddings belong to an owner, and nobody finds what another one asked.
"""
