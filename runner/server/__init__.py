"""Specs served by HTTP: runs that are started, watched and led from a browser or a program.

A run goes on whoever watches it: what it tells is written to its log as always, and each reader
reads for itself from there. `hosting` runs, `app` answers, `guard` lets nobody else in.
"""
