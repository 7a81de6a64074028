"""Folders and files as people have them, broken ones among them."""

import io
import os
import sys

import numpy as np
import pytest
from PIL import Image

from transferable.images.reading import PictureError, open_picture, read_folder, thumbnail


def saved(picture, kind="PNG", **options):
    file = io.BytesIO()
    picture.save(file, kind, **options)
    return file.getvalue()


GREY = np.arange(48, dtype=np.uint8).reshape(6, 8) * 5


def test_classes_are_folders(photos):
    found = read_folder(photos / "source")
    assert len(found) == 36
    assert sorted(set(found.labels)) == ["bar", "disc", "frame"]
    assert found.names == sorted(found.names)
    assert read_folder(photos / "source", classes=False).labels is None
    plain = read_folder(photos / "target")
    assert plain.labels is None
    assert len(plain) == 36
    assert not found.notes


def test_what_lies_around_is_named(photos):
    source = photos / "source"
    (source / "stray.png").write_bytes((source / "bar" / "00.png").read_bytes())
    (source / "bar" / "notes.txt").write_text("of the day")
    (source / ".hidden").mkdir()
    (source / "bar" / ".DS_Store").write_text("")
    (source / "nothing").mkdir()
    found = read_folder(source, classes=True)
    assert len(found) == 36
    notes = " ".join(found.notes)
    assert "'stray.png' in" in notes
    assert "'nothing' in" in notes
    assert "'bar/notes.txt' are not pictures" in notes
    assert "DS_Store" not in notes


@pytest.mark.skipif(os.name != "posix", reason="links")
def test_links_do_not_lead_out_of_the_folder(photos):
    outside = photos / "elsewhere"
    outside.mkdir()
    (outside / "secret.png").write_bytes((photos / "source" / "bar" / "00.png").read_bytes())
    (photos / "target" / "leak.png").symlink_to(outside / "secret.png")
    (photos / "target" / "leaks").symlink_to(outside)
    (photos / "target" / "again.jpg").symlink_to(photos / "target" / "00 bar.jpg")
    (photos / "target" / "gone.jpg").symlink_to(photos / "target" / "no such.jpg")
    found = read_folder(photos / "target")
    assert "again.jpg" in found.names
    assert not any("leak" in name or "gone" in name for name in found.names)
    assert "'leak.png', 'leaks' are links that are not followed" in " ".join(found.notes)


def test_folders_that_are_none(photos, tmp_path):
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(PictureError, match=r"empty holds no picture \(.bmp, .gif"):
        read_folder(empty)
    (empty / "readme.md").write_text("no")
    with pytest.raises(PictureError, match=r"'readme.md' are not pictures: left out"):
        read_folder(empty)
    with pytest.raises(PictureError, match="is not a folder"):
        read_folder(tmp_path / "source" / "bar" / "00.png")
    with pytest.raises(PictureError, match="needs one folder of pictures for each class"):
        read_folder(photos / "target", classes=True)
    one = tmp_path / "one"
    (one / "bar").mkdir(parents=True)
    Image.new("RGB", (4, 4)).save(one / "bar" / "x.png")
    with pytest.raises(PictureError, match="has one class, 'bar'; a classifier needs folders"):
        read_folder(one)


def test_every_mode_becomes_rgb():
    grey = Image.fromarray(GREY)
    expected = np.asarray(grey.convert("RGB"))
    deep = Image.fromarray(GREY.astype(np.uint16) * 257)
    assert deep.mode == "I;16"
    for content in (saved(grey), saved(deep), saved(deep, "TIFF"), saved(grey.convert("P"))):
        np.testing.assert_array_equal(np.asarray(open_picture(content)), expected)
    floats = Image.fromarray(GREY.astype(np.float32) / 7)
    assert np.asarray(open_picture(saved(floats, "TIFF"))).max() == 255
    cmyk = open_picture(saved(grey.convert("CMYK"), "TIFF"))
    assert cmyk.mode == "RGB"
    np.testing.assert_allclose(np.asarray(cmyk), expected, atol=1)
    clear = Image.new("RGBA", (4, 4), (10, 20, 30, 0))
    assert np.asarray(open_picture(saved(clear))).min() == 255
    assert open_picture(saved(Image.new("1", (3, 3)))).mode == "RGB"


def test_the_first_frame_of_an_animation():
    frames = [Image.new("RGB", (5, 4), colour) for colour in ("red", "blue", "green")]
    content = saved(frames[0], "GIF", save_all=True, append_images=frames[1:])
    assert np.asarray(open_picture(content))[0, 0].tolist() == [255, 0, 0]


def test_turned_pictures_stand_upright():
    tag = Image.Exif()
    tag[0x0112] = 6  # a quarter turn
    content = saved(Image.fromarray(GREY), "JPEG", exif=tag, quality=100)
    assert open_picture(content).size == (6, 8)


def test_broken_files_are_one_line(tmp_path, monkeypatch):
    whole = saved(Image.fromarray(np.random.default_rng(0).integers(0, 255, (60, 60, 3), np.uint8)))
    broken = {
        b"": "does not recognise it as a picture",
        b"GIF89a": "cannot be decoded|as a picture",
        b"text": "does not recognise it as a picture",
        whole[: len(whole) // 2]: "cannot be decoded",
        whole[:40] + b"\0" * 40 + whole[80:]: "cannot be decoded|as a picture",
    }
    for content, told in broken.items():
        with pytest.raises(PictureError, match=told) as caught:
            open_picture(content)
        assert "\n" not in str(caught.value)
    with pytest.raises(PictureError, match="cannot be decoded"):
        open_picture(tmp_path / "no such file")
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 1000)
    for side in (40, 60):  # a warning and an error of pillow's
        bomb = saved(Image.new("L", (side, side)))
        with pytest.raises(PictureError, match="more than the 1,000 pixels that pillow decodes"):
            open_picture(bomb)


def test_thumbnails_are_small_files(photos):
    png = thumbnail(photos / "target" / "00 bar.jpg", side=24)
    assert png.startswith(b"\x89PNG")
    assert open_picture(png).size == (24, 20)
    assert len(png) < 3000


@pytest.mark.skipif(os.name == "nt" or sys.platform == "darwin", reason="names are always text")
def test_names_that_cannot_be_written_are_left_out(photos):
    content = (photos / "target" / "00 bar.jpg").read_bytes()
    (photos / "target" / os.fsdecode(b"odd\xff.jpg")).write_bytes(content)
    found = read_folder(photos / "target")
    assert len(found) == 36
    assert found.notes == ["'odd\\udcff.jpg' have names that are not UTF-8: left out"]
