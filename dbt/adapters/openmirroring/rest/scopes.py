"""The scopes of the tokens for Microsoft Fabric."""

# for its REST API, Livy included
FABRIC = "https://api.fabric.microsoft.com/.default"

# for OneLake
STORAGE = "https://storage.azure.com/.default"
