"""Charts as inline SVG: figures in, markup out. Nothing is measured or judged here."""

from replayer.report.charts.heatmap import draw_heatmap
from replayer.report.charts.markup import Markup, join, tag
from replayer.report.charts.percentiles import draw_percentiles
from replayer.report.charts.sweep import draw_sweep
from replayer.report.charts.timeline import TIMELINE_KEY, Happenings, draw_timeline

__all__ = [
    "TIMELINE_KEY",
    "Happenings",
    "Markup",
    "draw_heatmap",
    "draw_percentiles",
    "draw_sweep",
    "draw_timeline",
    "join",
    "tag",
]
