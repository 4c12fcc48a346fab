"""HTTP around sessions: FastAPI, problem+json, SSE. Knows no Ray; `serve_app` puts Ray Serve around it."""
