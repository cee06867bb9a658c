"""The figures that a reader moves compute what the package computes, in a real browser."""

import html
import json
import re
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit

from llpbook import _linear, group_rate_bounds, identifiability, mean_map, theory
from llpbook.taxonomy import posterior

STATIC = Path(__file__).parents[1] / "book/_static"
PAGE = """<!doctype html><meta charset="utf-8"><script src="{script}"></script>
<figure id="{name}"></figure><script>addEventListener("load", () => {{
  const inputs = [...document.querySelectorAll("input")];
  {values}.forEach((value, i) => {{
    inputs[i].value = value; inputs[i].dispatchEvent(new Event("input"));
  }});
}});</script>"""


@pytest.fixture
def numbers(dom):
    """What a figure says of itself once its sliders have some values."""

    def read(name, *values):
        script = (STATIC / "moving.js").as_uri()
        values = [*map(float, values)]
        text = dom(PAGE.format(script=script, name=name, values=values))
        return json.loads(html.unescape(re.search('data-numbers="([^"]*)"', text)[1]))

    return read


@pytest.mark.parametrize(("log", "rho"), [(1, 0), (2.3, 0.3)])
def test_worth_of_bags(numbers, log, rho):
    seen = numbers("fig-prop-glance", log, rho)
    bags = np.repeat(np.arange(40), 25)
    worth = identifiability(bags, seen["shares"]).worth_in_labels
    assert seen["m"] == round(10**log)
    assert_allclose(seen["labels"], worth[-1])
    if not rho:
        assert_allclose(seen["labels"], 1000 / seen["m"])


def test_tilts_of_bags(numbers):
    shares = np.array([0.3, 0.9])
    seen = numbers("fig-tax-posteriors", *shares)
    x = np.array(seen["x"])
    bells = np.exp(-((x[:, None] - [-1, 1]) ** 2) / 2)
    joint = np.einsum("xy,yb->xyb", bells, [1 - shares, shares]) / 2
    joint /= joint.sum()
    assert_allclose(np.transpose(seen["curves"]), posterior(joint)[:, 1], rtol=1e-9)
    assert_allclose(expit(2 * np.array(seen["borders"]) + np.log(shares / (1 - shares))), 0.5)  # fmt: skip


def test_two_bags_and_their_class_means(numbers):
    seen = numbers("fig-mean-map-line", 0.3, 1.0, 0.6, 2.5)
    P = np.array([[0.7, 0.3], [0.4, 0.6]])
    means = mean_map.class_means(np.array([[1.0], [2.5]]), P, np.ones(2))
    assert_allclose(seen["ends"], means.ravel())


def test_two_precincts(numbers):
    s, y, D = np.array([0.3, 0.8]), np.array([0.4, 0.7]), 0.2
    seen = numbers("fig-ecological-hand", D, 0.1, s[0], y[0], s[1], y[1])
    inside, outside = np.array(seen["inside"]), np.array(seen["rest"])
    assert_allclose(s * inside + (1 - s) * outside, y)
    assert_allclose(inside - outside, D)
    assert_allclose(seen["rate"], inside @ s / s.sum())
    group = np.concatenate([np.arange(1000) < 1000 * share for share in s])
    bounds = group_rate_bounds(np.repeat([0, 1], 1000), y, group)
    assert_allclose(seen["bounds"], bounds.loc[True, ["low", "high"]], atol=1e-9)


def test_members_that_are_alike(numbers):
    seen = numbers("fig-theory-worth", 0.2, 1.5)
    x, bags = np.array(seen["x"])[:, None], np.repeat(np.arange(8), 10)
    observed = _linear.bag_counts(bags, np.full((8, 2), 0.5))
    J = theory.count_information(x, np.zeros(80), observed)
    H = theory.label_information(x, np.zeros(80))
    worth = J.item() / 8 / (H.item() / 80)
    assert_allclose(seen["measured"], worth, rtol=1e-6)
    assert_allclose(seen["labels"], 1 + 0.2 * (seen["m"] - 1))


def test_each_stands_on_a_page_of_the_book():
    names = re.findall(r'"(fig-[\w-]+)": \w+', (STATIC / "moving.js").read_text())
    pages = "".join(p.read_text() for p in STATIC.parent.glob("src/*.md"))
    assert len(names) == 5
    assert not [n for n in names if not re.search(rf"name: {n}\n|\({n}\)=\n", pages)]
