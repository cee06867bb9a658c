"""The book itself: derived files are up to date, and every rule of ``tools/check_book.py`` holds."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools"))

import check_book  # noqa: E402
import sync_cells  # noqa: E402


@pytest.fixture(scope="module")
def book():
    return check_book.Book(ROOT)


def test_derived_files_are_up_to_date(capsys):
    status = sync_cells.main(["--check"])
    captured = capsys.readouterr()
    assert status == 0, f"run make sync:\n{captured.err}{captured.out[:3000]}"


@pytest.mark.parametrize("rule", check_book.RULES)
def test_rule_holds(book, rule):
    found = [message for _, message in check_book.findings(book, [rule])]
    assert not found, f"{check_book.RULES[rule].__doc__}\n" + "\n".join(found)
