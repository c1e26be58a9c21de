"""Reads or checks a module: argv is "parse" or "check", the number of lines, and "new" for a new module each round."""

import sys
from itertools import count

import reader_text
from worker import serve

from ptxtile import check_text, parse

WAY, LINES, NEW = sys.argv[1], int(sys.argv[2]), sys.argv[3:] == ["new"]
work = {"parse": parse, "check": check_text}[WAY]
TEXT = reader_text.module(LINES)
seeds = count(1)
assert check_text(TEXT) == []


def prepare():
    text = reader_text.module(LINES, next(seeds)) if NEW else TEXT
    return lambda: work(text)


serve(prepare, {"python": sys.version.split()[0], "lines": TEXT.count("\n"), "way": WAY, "new": NEW})
