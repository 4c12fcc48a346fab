"""Our tools for others, by the Model Context Protocol.

`tools` does the work for one caller, `shapes` is what comes back, `server` offers it as the SDK's server, `http` puts
that under `/mcp`. Over standard input and output it is `marg_ray.mcp_server`.
"""
