"""The routes, one file per noun."""

from marg_ray.api.routes import chat, completions, drafts, events, library, metrics, page, reports, research, system

ROUTERS = (
    research.router,
    events.router,
    reports.router,
    drafts.router,
    library.router,
    chat.router,
    completions.router,
    system.router,
    metrics.router,
    page.router,
)
