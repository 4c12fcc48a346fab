"""What the runtime says of itself beside the sessions' logs: lines, figures and spans. Costs, times, counts; no truth.

Nothing follows from it, and it costs next to nothing where nobody looks: a line is not built while its level is off,
a figure is a number in a dictionary, spans are derived from the log and the calls when somebody wants them.
"""
