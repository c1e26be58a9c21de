"""`python -m ptxtile …` is `ptxtile …`."""

from ptxtile.cli import main

raise SystemExit(main())
