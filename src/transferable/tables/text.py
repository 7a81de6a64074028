"""Columns of sentences as words, whose vocabulary is learnt from both domains, and embedded."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.preprocessing import normalize

from transferable.tables.reading import TableError

_WORD = re.compile(r"[^\W_]{2,}")
_LONGEST = 64  # letters of a word, which is cut there
_MOST_TERMS = 50_000  # the most frequent of both domains
_RAREST = 2  # texts of either domain that have a word in common, or it is left out
_SENTENCE = 4  # words of the middle text of a column of sentences; names and codes have fewer
_LOOKED_AT = 2000  # texts
_EMBEDDED, _BATCH = 3000, 64  # letters of a text, and texts at once: some pad all to the longest
LONG = 25  # words of the middle text, above which embeddings have been measured to harm
PROBE = "Good, bad or neither: which of the three is this?"

# Maps a list of texts to an array with a row for each.
Embedder = Callable[[list[str]], Any]


@dataclass(frozen=True)
class Words:
    """Words of a column of texts, with the weight of each.

    A word is a run of at least two letters or digits of any script, in lower case.

    Attributes
    ----------
    terms : list of str
        The words in use, in alphabetical order: those of at least two texts, at most 50,000.
    weights : ndarray of shape (n_terms,)
        Inverse document frequency of each, smoothed as by scikit-learn.

    Examples
    --------
    >>> import pandas as pd
    >>> from transferable.tables.text import Words
    >>> texts = pd.Series(["Sturdy, and cheap.", "cheap and dull", None])
    >>> words = Words.of(texts)
    >>> words.terms
    ['and', 'cheap']
    >>> words.rows(texts).toarray().round(2)
    array([[0.71, 0.71],
           [0.71, 0.71],
           [0.  , 0.  ]])
    """

    terms: list[str]
    weights: NDArray[np.float64]

    @classmethod
    def of(cls, texts: pd.Series) -> Words:
        """Learn the words of texts of both domains; none if no two texts share any."""
        counter = CountVectorizer(analyzer=_words, min_df=_RAREST, max_features=_MOST_TERMS)
        try:
            counts = counter.fit_transform(_plain(texts))
        except ValueError:  # no word is left
            return cls([], np.zeros(0))
        frequencies = np.bincount(counts.indices, minlength=counts.shape[1])
        weights = np.log((1 + counts.shape[0]) / (1 + frequencies)) + 1
        return cls(counter.get_feature_names_out().tolist(), weights)

    def rows(self, texts: pd.Series) -> sp.csr_array:
        """Return texts as rows of unit length: (1 + log of the count) times the weight.

        A missing text is a row of zeros, as is one of unknown words only.
        """
        if not self.terms:
            return sp.csr_array((len(texts), 0))
        counter = CountVectorizer(analyzer=_words, vocabulary=self.terms, dtype=np.float64)
        rows = sp.csr_array(counter.transform(_plain(texts)))
        rows.data = (1 + np.log(rows.data)) * self.weights[rows.indices]
        return normalize(rows, copy=False)


def are_sentences(texts: Sequence[str]) -> bool:
    """Return whether the middle one of the texts has at least four words."""
    return middle_length(texts) >= _SENTENCE


def middle_length(texts: Sequence[str]) -> float:
    """Return the median number of words of texts, of an even sample where there are many."""
    step = -(-len(texts) // _LOOKED_AT)
    return float(np.median([len(_WORD.findall(text)) for text in texts[::step]]))


def embedder_of(given: Embedder | str) -> Embedder:
    """Return an embedder, given by itself or by the name of an installed package."""
    if not isinstance(given, str):
        return given
    if given != "wordllama":
        raise TableError(
            f"embedder={given!r} is for pictures, if for any; texts are embedded by a function "
            "of your own in Python, or by the package wordllama."
        )
    try:
        import wordllama
    except ImportError as error:
        raise TableError(
            f"embedder={given!r} needs that package, which carries its weights: pip install "
            f"{given}."
        ) from error
    # Its tokenizer lies in its own folder, where it does not look by itself.
    own = Path(wordllama.__file__).parent
    return wordllama.WordLlama.load(cache_dir=own, disable_download=True).embed


def embedded(texts: pd.Series, embedder: Embedder) -> NDArray[np.float64]:
    """Return the embeddings of texts, each cut and of unit length, computed in small batches."""
    cut = [text[:_EMBEDDED] for text in _plain(texts)]
    parts = [
        np.asarray(embedder(cut[start : start + _BATCH]), dtype=np.float64)
        for start in range(0, len(cut), _BATCH)
    ]
    widths = {part.shape[1:] for part in parts}
    rows = [len(part) for part in parts]
    if len(widths) > 1 or rows[:1] > [_BATCH] or sum(rows) != len(cut) or parts[0].ndim != 2:
        shapes = ", ".join(sorted({str(part.shape) for part in parts}))
        raise TableError(
            f"the embedder must return a row for each text, of the same width; it returns {shapes} "
            f"for batches of up to {_BATCH} texts."
        )
    found = np.concatenate(parts)
    if not np.isfinite(found).all():
        raise TableError("the embedder returns values that are not finite.")
    return normalize(found)


def _words(text: str) -> list[str]:
    return [word[:_LONGEST] for word in _WORD.findall(text.lower())]


def _plain(texts: pd.Series) -> list[str]:
    """Return texts as they are, and empty ones where there is none."""
    return ["" if missing else str(text) for text, missing in zip(texts, texts.isna(), strict=True)]
