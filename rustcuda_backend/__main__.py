"""`python -m rustcuda_backend`."""

from __future__ import annotations

from rustcuda_backend.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
