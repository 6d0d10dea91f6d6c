"""The protocol of the landing zone: what is written where, in which order, and how it recovers.

Nothing in here knows dbt's objects or Spark. The rules come from the specification "Open mirroring
landing zone requirements and format" and from the page "Open mirroring best practices" of the
Microsoft Fabric documentation.
"""
