"""Which code in the fatbin serves a GPU."""

from __future__ import annotations


class _Image:
    """The code of one capability in the fatbin, and the oldest driver that loads it."""

    __slots__ = ("branch", "cuda", "major", "minor", "ptx", "suffix")

    def __init__(self, major: int, minor: int, suffix: str, ptx: bool, branch: int, cuda: int) -> None:
        self.major, self.minor, self.suffix, self.ptx = major, minor, suffix, ptx
        self.branch, self.cuda = branch, cuda

    @property
    def name(self) -> str:
        return f"{self.major}.{self.minor}{self.suffix}"

    def __str__(self) -> str:
        return f"{self.name}+PTX" if self.ptx else self.name

    def sass_runs_on(self, major: int, minor: int) -> bool:
        """NVIDIA's binary compatibility: later minors of one major; `a` and `f` are narrower."""
        if self.suffix == "a":
            return (self.major, self.minor) == (major, minor)
        # 10.1, later renamed 11.0, is a family of its own.
        if self.suffix == "f" and (10, 1) in ((self.major, self.minor), (major, minor)):
            return (self.major, self.minor) == (major, minor)
        return self.major == major and self.minor <= minor

    def ptx_runs_on(self, major: int, minor: int) -> bool:
        """PTX serves every later GPU, but with `a` and `f` no more than the SASS does."""
        if self.suffix:
            return self.ptx and self.sass_runs_on(major, minor)
        return self.ptx and (self.major, self.minor) <= (major, minor)


def _choose(major: int, minor: int, images: tuple[_Image, ...]) -> tuple[_Image, str] | None:
    """The image that serves a GPU and the kind of code, `"SASS"` or `"PTX"`; None where none does."""

    def nearest(image: _Image) -> tuple[int, int, int]:
        return image.major, image.minor, ("", "f", "a").index(image.suffix)

    sass = sorted((image for image in images if image.sass_runs_on(major, minor)), key=nearest)
    if sass:
        return sass[-1], "SASS"
    ptx = sorted((image for image in images if image.ptx_runs_on(major, minor)), key=nearest)
    return (ptx[-1], "PTX") if ptx else None
