"""The report as one HTML file that needs no network: charts, tables, and what they are worth."""

from replayer.report.html.page import render_html

__all__ = ["render_html"]
