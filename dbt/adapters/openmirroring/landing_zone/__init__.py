"""The landing zone protocol: the files, the order in which they are written, and recovery.

It knows neither what computes the rows nor who runs it. The rules come from the specification
"Open mirroring landing zone requirements and format" and from the page "Open mirroring best
practices" of the Microsoft Fabric documentation.
"""
