"""Benchmarks: planted pools (`generate`) and side-by-side runs against other tools (`peers`)."""
