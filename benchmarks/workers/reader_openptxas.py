"""Reads the module with openptxas: argv is the folder of its checkout and the number of lines."""

import sys

sys.path.insert(0, sys.argv[1])

import reader_text
from ptx.parser import parse
from worker import serve

TEXT = reader_text.module(int(sys.argv[2]))
serve(lambda: lambda: parse(TEXT), {"python": sys.version.split()[0], "lines": TEXT.count("\n")})
