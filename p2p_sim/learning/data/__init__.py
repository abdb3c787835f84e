"""Data: named data sets and own files, read into tables, made into a matrix and labels."""
