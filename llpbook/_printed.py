"""Display of reports in Jupyter."""

from html import escape


class Printed:
    """A report whose last line in a cell shows it as `print` does."""

    def _repr_html_(self):
        return f"<pre>{escape(str(self))}</pre>"
