"""The kernel: the words and rules of the house, pure."""
