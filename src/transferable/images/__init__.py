"""Labels for folders of pictures: embeddings by a network that is fixed, adapted by the library.

A source is a folder with a folder of pictures for each class, a target a folder of pictures. They
need pillow, and torch for embedders by name: the extra ``images``.
"""

from transferable.images.classifier import ImageClassifier
from transferable.images.reading import PictureError, open_picture, read_folder

__all__ = ["ImageClassifier", "PictureError", "open_picture", "read_folder"]
