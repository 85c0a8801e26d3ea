"""A short run of ``fuzz.py``: random tables give results or documented errors."""

import pytest
from fuzz import distinct, fuzz
from fuzz_tables import make_case


@pytest.mark.parametrize("first", range(0, 100, 20))
def test_random_tables(first):
    failures, n_fitted = fuzz(0, range(first, first + 20))
    found = [
        f"{failure}\n{make_case(0, failure.number).described()}\n"
        f"python tests/fuzz.py --seed 0 --case {failure.number}\n"
        for _, failure in distinct(failures)
    ]
    assert not found, "\n".join(found)
    # Tables that are all refused would show nothing.
    assert n_fitted > 8
