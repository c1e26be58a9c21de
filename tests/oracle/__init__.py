"""The spelling table against NVIDIA's assembler."""
