"""What people type into the search of the site, in a real browser: the page that they need comes first."""

import html
import json
import os
import re
from pathlib import Path

import pytest

#: The page that comes first, below book/; `make book` runs this on the site that it has built.
FIRST = {
    "aggregate data": "intro",
    "benchmark": "benchmark",
    "census": "index",
    "CIFAR-10": "networks",
    "citation": "index",
    "cite": "index",
    "confidence interval": "uncertainty",
    "conversion": "beyond_memory",
    "cross-validation": "model_selection",
    "CTR": "beyond_memory",
    "decision trees": "count_likelihood",
    "deep learning": "networks",
    "differential privacy": "not_known",
    "district": "your_data",
    "ecological fallacy": "ecological",
    "ecological inference": "ecological",
    "election": "ecological",
    "fairness": "not_known",
    "GPU": "any_learner",
    "how many bags": "theory",
    "hyperparameter": "model_selection",
    "images": "networks",
    "imbalanced": "choosing",
    "install": "intro",
    "InvCal": "invcal",
    "King": "ecological",
    "large data": "beyond_memory",
    "license": "index",
    "logistic regression": "count_likelihood",
    "MeanMap": "mean_map",
    "missing values": "your_data",
    "multiclass": "choosing",
    "multilevel": "bags_that_differ",
    "neural network": "networks",
    "noise": "beyond_memory",
    "pandas": "your_data",
    "percentages": "your_data",
    "precinct": "ecological",
    "prevalence": "glossary",
    "privacy": "not_known",
    "probability": "count_likelihood",
    "PyTorch": "any_learner",
    "racially polarized voting": "ecological",
    "RxC": "ecological",
    "sample size": "theory",
    "shop": "your_data",
    "slides": "teaching",
    "standard error": "uncertainty",
    "survey weights": "ecological",
    "syllabus": "teaching",
    "turnout": "ecological",
    "vote shares": "ecological",
    "weak supervision": "intro",
    "which method": "choosing",
    "XGBoost": "any_learner",
}
ASK = """<script>addEventListener("load", () => {
  const first = {};
  for (const query of QUERIES) {
    const results = Search._performSearch(...Search._parseQuery(query));
    first[query] = results.slice(-5).reverse().map(([page]) => page);
  }
  document.body.innerHTML = "";
  document.body.dataset.first = JSON.stringify(first);
});</script>"""


@pytest.fixture(scope="module")
def results(dom):
    """The first pages for each query, by the search page's own scripts and index."""
    site = os.environ.get("LLPBOOK_SITE")
    if not site:
        pytest.skip("no built site is named: `make book` runs this")
    site = Path(site).resolve()
    page = (site / "search.html").read_text(encoding="utf-8")
    page = page.replace("<head>", f'<head><base href="{site.as_uri()}/">', 1)
    page += ASK.replace("QUERIES", json.dumps([*FIRST]))
    first = re.search('data-first="([^"]*)"', dom(page))[1]
    return json.loads(html.unescape(first))


@pytest.mark.parametrize("query", FIRST)
def test_the_page_that_one_needs_comes_first(results, query):
    assert results[query][:1] == [f"book/{FIRST[query]}"], results[query]
