"""ptxtile: exact PTX instructions from Python."""
