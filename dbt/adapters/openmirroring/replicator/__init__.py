"""A mirrored database on this machine, in place of the service.

The replicator reads a landing zone by Fabric's specification and applies its files to Delta
tables. Users can see the mirrored tables before they have a workspace. Tests use it to check the
publisher independently, so nothing here imports the publisher's code.

Where the documentation says nothing, the replicator follows the observed behaviour of the service.
Otherwise it does what reveals a publisher's mistake soonest.
"""
