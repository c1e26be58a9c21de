"""Words for sm_90 and later: barriers in shared memory, rings of stages, clusters, roles of warps, fences.

Each is one short sequence of instructions that its docstring gives; nothing waits, arrives or fences by itself.
"""
