"""What the laws of several mechanisms share, without naming one."""
