"""Pictures of bags: the one standard figure of the book, and those that go with it.

`plot_bags` draws what a learner from label proportions sees: instances colored by bag, and the proportions of the bags
as bars. `plot_critical_difference` shows average ranks of methods and which of them differ, `draw_dag` and `draw_dags`
the graphs of `llpbook.taxonomy`. `Table` shows a DataFrame with a caption.

``PALETTE`` holds eight colors of Okabe and Ito (2008), blue, vermillion, green, sky blue, purple, orange, black and
yellow, the first of which differ most for color-blind readers; ``MARKERS`` one marker for each, so that no figure
depends on color alone. Nothing here changes matplotlib's settings but `use_style`, nothing calls ``plt.show()``, and
matplotlib is imported only when a figure is drawn.
"""

from ._bags import plot_bags
from ._critical_difference import plot_critical_difference
from ._dags import draw_dag, draw_dags
from ._style import GRAY, MARKERS, PALETTE, literal, pyplot, use_style
from ._table import Table

__all__ = [
    "Table",
    "draw_dag",
    "draw_dags",
    "plot_bags",
    "plot_critical_difference",
    "use_style",
]
