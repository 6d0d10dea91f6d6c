"""The landing zone protocol: the files, the order in which they are written, and recovery.

The rules come from the specification "Open mirroring landing zone requirements and format" and
from the page "Open mirroring best practices" of the Microsoft Fabric documentation.
"""
