"""No adaptation: a network trained on the source, which the other methods are measured against."""

from __future__ import annotations

from transferable.deep._base import DeepClassifier
from transferable.deep._parameters import estimator

__all__ = ["SourceOnly"]


@estimator
class SourceOnly(DeepClassifier):
    """Train a network on the labelled source rows and use it on the target as it is.

    Its parameters are those of every deep method.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels of the source.
    transduction_ : ndarray of shape (n_samples,)
        The predicted label of every fitted row, in input order.
    network_ : torch.nn.Module
        The trained network, on the CPU.
    input_shape_ : tuple of int
        The shape of a row for the network.
    history_ : list of dict
        For each epoch what each part added to the loss, the learning rate, the seconds it took, and
        the mean entropy and class shares of predictions on some target rows.

    Notes
    -----
    X may be an array, a memory map, which is read batch by batch, or a torch Dataset. Bytes are
    brought to [0, 1]; nothing else is scaled. ``predict`` takes rows for target rows, which
    matters to networks with batch normalisation only: they keep statistics for each domain, and
    this method knows the source's. On the CPU rows in double precision are predicted in it.

    Examples
    --------
    >>> from transferable.datasets import load_printed_to_handwritten
    >>> from transferable.deep import SourceOnly
    >>> task = load_printed_to_handwritten()
    >>> model = SourceOnly(epochs=3).adapt(task.Xs[::7], task.ys[::7], task.Xt[::7])
    >>> model.predict_proba(task.Xt).shape == (len(task.Xt), 10)
    True
    """

    _without_target = None
