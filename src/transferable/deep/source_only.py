"""No adaptation: a network trained on the source, which the other methods are measured against."""

from __future__ import annotations

from transferable.deep._base import DeepClassifier, estimator

__all__ = ["SourceOnly"]


@estimator
class SourceOnly(DeepClassifier):
    """Train a network on the labelled source rows and use it on the target as it is.

    Its parameters are those of every deep method.

    Parameters
    ----------
    network : {"mlp", "lenet", "alexnet", "convm"} or callable, default="mlp"
        The network, see :mod:`transferable.deep.networks`. A callable is given the shape of a row
        and the number of classes and returns a ``torch.nn.Module`` with ``features`` and ``head``;
        such a model can be used but not saved, since loading runs no code.
    weights : str, path-like or None, default=None
        A safetensors file of weights to start from, those of the head left out or replaced.
    input_shape : tuple of int or None, default=None
        The shape of a row for the network, where X holds it flat; (1, 28, 28) for digits in 784
        columns. None takes rows as they come, and gives pictures without channels one.
    epochs : int, default=20
        Epochs of training. The last one is the result, always.
    epoch_steps : int or None, default=None
        Steps that make an epoch; None makes as many as the larger domain has batches.
    batch_size : int, default=128
        Rows of each domain in a step; all rows of a domain that has fewer.
    optimizer : {"adam", "sgd"}, default="adam"
        How weights follow the loss.
    learning_rate : float, default=0.001
        Where the learning rate begins.
    schedule : {"cosine", "inverse", "constant"}, default="cosine"
        How it goes on over the share t of the steps: down to 0 along a cosine, divided by
        (1 + 10 t)^0.75, or not at all.
    momentum : float, default=0.9
        Of "sgd".
    weight_decay : float, default=0.0005
        Weight of half the squared weights.
    augment : callable or None, default=None
        Changes the rows of both domains at random before every step, given a batch and a
        ``torch.Generator``: :class:`RandomAffine` for small pictures.
    device : str, default="auto"
        "cpu", "cuda" or "auto": a GPU if there is one.
    deterministic : bool, default=False
        Whether a GPU must give the same result to the bit for the same seed, at some cost. One CPU
        does so anyway.
    checkpoint : str, path-like or None, default=None
        A file that is written after every epoch. A fit with the same rows and parameters that finds
        it goes on from there; the file is removed when the fit is done.
    random_state : int, RandomState instance or None, default=0
        Seed of weights, batches, dropout and augmentation.
    verbose : bool, default=False
        Whether to show a progress bar.

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
