"""Reads the module with pyptx: argv is the number of lines."""

import sys
from importlib.metadata import version

import reader_text
from pyptx.parser import parse
from worker import serve

TEXT = reader_text.module(int(sys.argv[1]))
facts = {"pyptx": version("pyptx"), "python": sys.version.split()[0], "lines": TEXT.count("\n")}
serve(lambda: lambda: parse(TEXT), facts)
