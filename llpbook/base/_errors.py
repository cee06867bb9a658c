"""The one error of what shares cannot tell, and the addresses of pages."""


class NotIdentifiableError(ValueError):
    """The proportions cannot answer the question, however many instances there are.

    Examples
    --------
    >>> from llpbook import MeanMap, NotIdentifiableError
    >>> try:
    ...     MeanMap().fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1], [0.5, 0.5])
    ... except NotIdentifiableError as error:
    ...     print(str(error)[:40])
    proportions are the same in every bag in
    """


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
