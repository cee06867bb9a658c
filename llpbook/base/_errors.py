"""The one error of what shares cannot tell, and the addresses of pages."""


class NotIdentifiableError(ValueError):
    """The proportions cannot answer the question, however many instances there are."""


#: The documentation, which `project.urls` of pyproject.toml names too.
SITE = "https://llpbook.github.io/llpbook/stable/"


def page(name):
    """The address of a page of the book.

    Parameters
    ----------
    name : str
        Such as "mean_map", or "intro.html#two-baselines" for a section.

    Returns
    -------
    str
    """
    return f"{SITE}book/{name}" + ".html" * (".html" not in name)
