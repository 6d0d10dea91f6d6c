"""Microsoft Fabric as a service: its REST API, identities, monitoring, and waiting for it."""
