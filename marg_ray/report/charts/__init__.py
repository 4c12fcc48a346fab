"""Charts: the tables of cited sources as pictures. Data is chosen by rule, drawn when it is shown."""

from marg_ray.report.charts.choosing import charts_of
from marg_ray.report.charts.data import ChartSpec, Plot, chart_of, parse_spec
from marg_ray.report.charts.drawing import png, svg, unprintable

__all__ = ["ChartSpec", "Plot", "chart_of", "charts_of", "parse_spec", "png", "svg", "unprintable"]
