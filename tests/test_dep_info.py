"""What cargo's `.d` files say has been read."""

from __future__ import annotations

from pathlib import Path

import pytest

from rustcuda_backend import dep_info


def written(tmp_path: Path, *words: str) -> Path:
    file = tmp_path / "libx.d"
    escaped = [word.replace(" ", "\\ ") for word in words]
    file.write_text(f"{tmp_path}/libx.a: {' '.join(escaped)}\n", encoding="utf-8")
    return file


@pytest.mark.parametrize("name", ["a.rs", "a b.rs", "größe.rs", "a: b", "a\\b", "-x", "$(x)"])
def test_names(tmp_path: Path, name: str) -> None:
    (tmp_path / name).touch()
    (tmp_path / "other").touch()
    file = written(tmp_path, str(tmp_path / name), str(tmp_path / "other"))
    assert dep_info.read(file) == {tmp_path / name, tmp_path / "other"}


def test_only_what_is_there_has_been_read(tmp_path: Path) -> None:
    assert dep_info.read(tmp_path / "missing.d") == set()
    (tmp_path / "here").touch()
    # One relative to a folder that is not known.
    assert dep_info.read(written(tmp_path, str(tmp_path / "gone"), "here")) == set()
    (tmp_path / "empty.d").touch()
    assert dep_info.read(tmp_path / "empty.d") == set()


def test_a_folder_stands_for_its_files(tmp_path: Path) -> None:
    kept = {tmp_path / "data" / name for name in ("x", "deep/.y", "target/z")}
    left_out = {tmp_path / "data" / name for name in (".git/HEAD", "cache/CACHEDIR.TAG", "__pycache__/x.pyc")}
    for path in kept | left_out:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    assert dep_info.read(written(tmp_path, str(tmp_path / "data"))) == kept


def test_dots_lead_on_from_where_links_lead(tmp_path: Path) -> None:
    (tmp_path / "far/away").mkdir(parents=True)
    (tmp_path / "far/x.rs").touch()
    (tmp_path / "link").symlink_to("far/away")
    (tmp_path / "link.rs").symlink_to("far/x.rs")
    file = written(tmp_path, f"{tmp_path}/link/../x.rs", f"{tmp_path}/link.rs")
    assert dep_info.read(file) == {tmp_path / "far/x.rs", tmp_path / "link.rs"}


def test_without_folders(tmp_path: Path) -> None:
    (tmp_path / "made").mkdir()
    (tmp_path / "link").symlink_to("made")
    paths = {tmp_path / "made/x", tmp_path / "made-up", tmp_path / "y"}
    expected = {tmp_path / "made-up", tmp_path / "y"}
    assert dep_info.without(paths, [tmp_path / "link", tmp_path / "gone"]) == expected
