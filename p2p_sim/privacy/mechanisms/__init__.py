"""One file or folder for each mechanism: its law, faults, theorems, audit statistic and noise, registered at its end.

A room has the name of its protocol's file.  The registry finds it by that when it is first asked of the protocol, so
that a new mechanism needs no line in any other file.
"""
