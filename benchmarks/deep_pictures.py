"""Pictures a second of DeepCORAL with a ResNet-50 in bf16, and of a loop written by hand.

1,920 JPEG files of 320 x 280 pixels are drawn, decoded and cropped at random by 14 processes for
both. Needs torchvision, and a GPU for numbers that mean something.
"""

from __future__ import annotations

import tempfile
from multiprocessing import Pool
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch.nn import functional
from torch.utils.data import DataLoader

from transferable.deep import DeepCORAL
from transferable.deep.penalties import covariance_distance

N_PICTURES, WORKERS, BATCH, EPOCHS = 1920, 14, 64, 3


def pictures(device: str, steps: int | None) -> dict[str, float]:
    """Rates of the best epoch of each, in one run, or with so many steps an epoch."""
    import torchvision.transforms as T  # noqa: N812 (by custom)
    from torchvision.datasets import ImageFolder

    scale = T.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])
    train = T.Compose([T.RandomResizedCrop(224), T.RandomHorizontalFlip(), T.ToTensor(), scale])
    fixed = T.Compose([T.Resize(256), T.CenterCrop(224), T.ToTensor(), scale])
    steps = steps or N_PICTURES // BATCH
    with tempfile.TemporaryDirectory() as root:
        for c in range(10):
            (Path(root) / f"class {c}").mkdir()
        with Pool() as pool:
            pool.starmap(_draw, [(root, i) for i in range(steps * BATCH)], chunksize=64)
        bare = min(_bare_epochs(ImageFolder(root, train), device))
        model = DeepCORAL(
            network="torchvision:resnet50", prepare=(train, fixed), num_workers=WORKERS,
            precision="bf16", optimizer="sgd", batch_size=BATCH, epochs=EPOCHS, weight=1.0,
            device=device,
        ).adapt(ImageFolder(root), None, ImageFolder(root))  # fmt: skip
    ours = min(entry["seconds"] for entry in model.history_)
    rates = {"ours": 2 * steps * BATCH / ours, "bare": 2 * steps * BATCH / bare}
    return rates | {"ratio": bare / ours, "bytes": model.history_[-1]["bytes"]}


def _draw(root: str, i: int) -> None:
    small = np.random.default_rng(i).integers(0, 256, (32, 32, 3), dtype=np.uint8)
    picture = Image.fromarray(small).resize((320, 280), Image.Resampling.BICUBIC)
    picture.save(Path(root) / f"class {i % 10}" / f"{i}.jpg", quality=90)


def _bare_epochs(dataset: Any, device: str) -> list[float]:
    from torchvision.models import resnet50

    options: dict[str, Any] = {"shuffle": True, "drop_last": True, "persistent_workers": True}
    loaders = [
        DataLoader(dataset, BATCH, num_workers=WORKERS // 2, pin_memory=True, **options)
        for _ in range(2)
    ]
    body, head = resnet50().to(device).train(), torch.nn.Linear(2048, 10).to(device)
    body.fc = torch.nn.Identity()
    weights = [*body.parameters(), *head.parameters()]
    optimizer = torch.optim.SGD(weights, 1e-3, momentum=0.9)
    seconds = []
    for _ in range(EPOCHS):
        started, losses = perf_counter(), []
        for (xs, ys), (xt, _) in zip(*loaders, strict=True):
            x, y = (v.to(device, non_blocking=True) for v in (torch.cat([xs, xt]), ys))
            with torch.autocast(device, torch.bfloat16):
                f = body(x).float()
            fs, ft = f.split(len(xs))
            loss = functional.cross_entropy(head(fs), y) + covariance_distance(fs, ft)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
        torch.stack(losses).cpu()
        seconds.append(perf_counter() - started)
    return seconds
