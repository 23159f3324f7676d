"""This package's version, as its metadata has it."""

from importlib.metadata import version

VERSION = version("rustcuda-backend")
