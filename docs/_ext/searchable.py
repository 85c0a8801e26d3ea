"""Words that users look for are found by the search of the site.

The build fails if no page has all words of one of the `QUERIES`, as the search would see
them: stemmed, without stop words, in text or titles.
"""

import json
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.errors import SphinxError
from sphinx.search.en import SearchEnglish
from sphinx.util.typing import ExtensionMetadata

# What is looked for, and a page that must be among the results.
QUERIES = {
    "imbalanced": "faq",
    "shap": "shapley",
    "missing at random": "missing",
    "scaling": "faq",
    "sparse": "data",
}


def pages_of(index: dict, word: str) -> set[str]:
    """Return the pages that have a stemmed word in their text or titles."""
    found: set[str] = set()
    for part in ("terms", "titleterms"):
        numbers = index[part].get(word, [])
        numbers = numbers if isinstance(numbers, list) else [numbers]
        found |= {index["docnames"][number] for number in numbers}
    return found


def check(app: Sphinx, failure: Exception | None) -> None:
    """Look for every query in the index that was written."""
    path = Path(app.outdir, "searchindex.js")
    if failure is not None or app.builder.name != "html":
        return
    script = path.read_text(encoding="utf-8")
    index = json.loads(script.removeprefix("Search.setIndex(").rstrip(")"))
    language = SearchEnglish({})
    for query, page in QUERIES.items():
        words = filter(language.word_filter, query.split())
        found = [pages_of(index, language.stem(word)) for word in words]
        if page not in set.intersection(*found):
            raise SphinxError(f"The search for {query!r} does not find page {page!r}.")


def setup(app: Sphinx) -> ExtensionMetadata:
    """Check after the build."""
    app.connect("build-finished", check)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
