"""A mirrored database on this machine, in place of the service.

It reads a landing zone by Fabric's specification and applies it to Delta tables, so that the
mirrored tables can be seen before there is a workspace, and so that tests have a judge who shares
nothing with the publisher: nothing here imports the landing zone's side.

Where the documentation is silent, it does what the service was seen doing, or else what shows a
publisher's mistake soonest.
"""
